// SPDX-License-Identifier: Apache-2.0
// The JDK's own Kerberos: Krb5LoginModule by JAAS and JGSS, asked as adapter.py's ProgramClient
// says. Run as a single source file: java Login.java <order. krb5.conf is
// -Djava.security.krb5.conf.

import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.security.auth.Subject;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.auth.kerberos.KerberosTicket;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import javax.security.auth.login.LoginContext;
import org.ietf.jgss.GSSContext;
import org.ietf.jgss.GSSCredential;
import org.ietf.jgss.GSSManager;
import org.ietf.jgss.GSSName;
import org.ietf.jgss.Oid;

public class Login {
  private static final String KRB5 = "1.2.840.113554.1.2.2";
  private static Map<String, String> order = new HashMap<>();

  public static void main(String[] arguments) throws Exception {
    order = parse(new String(System.in.readAllBytes(), StandardCharsets.UTF_8));
    String text = "";
    String token = "";
    boolean ok = false;
    try {
      Subject subject = login();
      KerberosTicket ticket = ticketOf(subject, "krbtgt/");
      text = "session key " + ticket.getSessionKeyType();
      switch (order.get("step")) {
        case "service_ticket":
          token = initialToken(subject);
          text = ticketOf(subject, order.get("service")).getServer().getName();
          break;
        case "renew":
          long before = ticket.getEndTime().getTime();
          Thread.sleep(1100);  // a ticket's times are whole seconds
          ticket.refresh();
          if (ticket.getEndTime().getTime() <= before) {
            throw new IllegalStateException("the renewed ticket does not end later");
          }
          break;
        default:
          break;
      }
      ok = true;
    } catch (Exception failure) {
      text = failure.toString();
    }
    System.out.println("{\"ok\": " + ok + ", \"text\": \"" + escape(text) + "\", \"token\": \"" + token
        + "\"}");
  }

  private static Subject login() throws Exception {
    boolean keytab = order.get("step").equals("keytab_login");
    Map<String, String> options = new HashMap<>();
    options.put("principal", order.get("user") + "@" + order.get("realm"));
    options.put("isInitiator", "true");
    options.put("refreshKrb5Config", "true");
    if (keytab) {
      options.put("useKeyTab", "true");
      options.put("keyTab", order.get("keytab"));
      options.put("doNotPrompt", "true");
    }
    AppConfigurationEntry entry = new AppConfigurationEntry(
        "com.sun.security.auth.module.Krb5LoginModule",
        AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, options);
    Configuration configuration = new Configuration() {
      @Override
      public AppConfigurationEntry[] getAppConfigurationEntry(String name) {
        return new AppConfigurationEntry[] {entry};
      }
    };
    CallbackHandler answers = callbacks -> {
      for (Callback callback : callbacks) {
        if (callback instanceof PasswordCallback) {
          ((PasswordCallback) callback).setPassword(order.get("password").toCharArray());
        } else if (callback instanceof NameCallback) {
          ((NameCallback) callback).setName(order.get("user"));
        }
      }
    };
    LoginContext context = new LoginContext("client", new Subject(), answers, configuration);
    context.login();
    return context.getSubject();
  }

  /** JGSS's first token for the service; JGSS gets the service ticket on the way. */
  @SuppressWarnings("removal")
  private static String initialToken(Subject subject) throws Exception {
    byte[] token = Subject.doAs(subject, (PrivilegedExceptionAction<byte[]>) () -> {
      GSSManager manager = GSSManager.getInstance();
      Oid krb5 = new Oid(KRB5);
      GSSName service = manager.createName(
          order.get("service").replace('/', '@'), GSSName.NT_HOSTBASED_SERVICE);
      GSSCredential own = manager.createCredential(
          null, GSSCredential.DEFAULT_LIFETIME, krb5, GSSCredential.INITIATE_ONLY);
      GSSContext context = manager.createContext(service, krb5, own, GSSContext.DEFAULT_LIFETIME);
      context.requestMutualAuth(false);
      return context.initSecContext(new byte[0], 0, 0);
    });
    return Base64.getEncoder().encodeToString(token);
  }

  private static KerberosTicket ticketOf(Subject subject, String server) {
    for (KerberosTicket ticket : subject.getPrivateCredentials(KerberosTicket.class)) {
      if (ticket.getServer().getName().startsWith(server)) {
        return ticket;
      }
    }
    throw new IllegalStateException("no ticket for " + server);
  }

  /** The order is one flat JSON object of strings and numbers, without escapes. */
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
