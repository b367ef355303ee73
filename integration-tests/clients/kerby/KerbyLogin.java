// SPDX-License-Identifier: Apache-2.0
// Apache Kerby's client, asked as adapter.py's ProgramClient says. Its tickets go to a ccache.

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kerby.KOptions;
import org.apache.kerby.kerberos.kerb.client.KrbClient;
import org.apache.kerby.kerberos.kerb.client.KrbConfig;
import org.apache.kerby.kerberos.kerb.client.KrbKdcOption;
import org.apache.kerby.kerberos.kerb.client.KrbOption;
import org.apache.kerby.kerberos.kerb.type.ticket.SgtTicket;
import org.apache.kerby.kerberos.kerb.type.ticket.TgtTicket;

public class KerbyLogin {
  private static Map<String, String> order;

  public static void main(String[] arguments) throws Exception {
    order = parse(new String(System.in.readAllBytes(), StandardCharsets.UTF_8));
    String text = "";
    boolean ok = false;
    try {
      text = perform();
      ok = true;
    } catch (Exception failure) {
      text = failure.toString();
    }
    System.out.println("{\"ok\": " + ok + ", \"text\": \"" + escape(text) + "\"}");
    System.exit(0);  // its transport's threads would go on
  }

  private static String perform() throws Exception {
    KrbClient client = client();
    File cache = new File(order.get("ccache"));
    String principal = order.get("user") + "@" + order.get("realm");
    String service = order.get("service") + "@" + order.get("realm");
    switch (order.get("step")) {
      case "keytab_login":
        return describe(client.requestTgt(principal, new File(order.get("keytab"))));
      case "service_ticket":
        TgtTicket tgt = passwordTgt(client, principal);
        SgtTicket ticket = client.requestSgt(tgt, service);
        client.storeTicket(ticket, cache);
        return service + " session key " + ticket.getSessionKey().getKeyType().getValue();
      case "renew":
        client.storeTicket(passwordTgt(client, principal), cache);
        SgtTicket renewed = client.requestSgt(cache, null);
        return "renewed until " + renewed.getEncKdcRepPart().getEndTime();
      default:
        client.storeTicket(passwordTgt(client, principal), cache);
        return "stored";
    }
  }

  private static TgtTicket passwordTgt(KrbClient client, String principal) throws Exception {
    KOptions options = new KOptions();
    options.add(KrbOption.CLIENT_PRINCIPAL, principal);
    options.add(KrbOption.USE_PASSWD, true);
    options.add(KrbOption.USER_PASSWD, order.get("password"));
    options.add(KrbKdcOption.RENEWABLE, true);
    options.add(KrbOption.RENEWABLE_TIME, "172800");
    return client.requestTgt(options);
  }

  private static String describe(TgtTicket ticket) {
    return "session key " + ticket.getSessionKey().getKeyType().getValue();
  }

  private static KrbClient client() throws Exception {
    KrbConfig config = new KrbConfig();
    config.addKrb5Config(new File(order.get("config")));
    KrbClient client = new KrbClient(config);
    boolean udp = order.get("transport").equals("udp");
    client.setKdcHost("127.0.0.1");
    client.setKdcRealm(order.get("realm"));
    client.setAllowUdp(udp);
    client.setAllowTcp(!udp);
    if (udp) {
      client.setKdcUdpPort(Integer.parseInt(order.get("port")));
    } else {
      client.setKdcTcpPort(Integer.parseInt(order.get("port")));
    }
    client.init();
    return client;
  }

  private static Map<String, String> parse(String json) {
    Map<String, String> found = new HashMap<>();
    Matcher matcher = Pattern.compile("\"(\\w+)\": (?:\"([^\"]*)\"|([^,}]*))").matcher(json);
    while (matcher.find()) {
      found.put(matcher.group(1), matcher.group(2) != null ? matcher.group(2) : matcher.group(3));
    }
    return found;
  }

  private static String escape(String text) {
    return text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\s+", " ");
  }
}
