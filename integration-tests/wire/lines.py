# SPDX-License-Identifier: Apache-2.0
"""Three hosts on lines of a chosen rate and length: fault/'s network, and a second one beside it.

    P0's namespace            P1's namespace            P2's namespace
    +--------------+          +--------------+          +--------------+
    | eth0 192.0.2.1          | eth0 192.0.2.2          | eth0 192.0.2.3     veth, to the switch:
    |   tbf        |          |   tbf        |          |   tbf        |     no delay of its own
    |              |          |              |          |              |
    | wire0 198.51.100.1      | wire0 198.51.100.2      | wire0 198.51.100.3
    |   tbf        |          |   tbf        |          |   tbf        |     TUN
    +------|-------+          +------|-------+          +------|-------+
           +-------------------------+-------------------------+
                              wire-relay                                    the delay, and the rate
                                                                            of each receiver's port

A line without delay takes the veth devices and no relay runs. *Rate* is what the cable itself
carries, with all that Ethernet adds to a frame (preamble, header, checksum and gap: 38 bytes).
tbf counts less than that (nothing on TUN, the 14 bytes of the header on veth), so it is set to the
part that an IP packet of full size is of a full frame: one TCP stream then reaches what it reaches
on real Ethernet of this rate, 94.1 % of it.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
for folder in ('realm', 'fault'):
    sys.path.insert(0, str(HERE.parent / folder))

import daemon  # noqa: E402
import network  # noqa: E402

BUILD = pathlib.Path(os.environ.get('MPCKDC_BUILD', HERE.parent.parent / 'build'))
RELAY = BUILD / 'cmake/integration-tests/wire/wire-relay'
PARTIES = ('p0', 'p1', 'p2')
REALM = (*PARTIES, 'kdc')   # hosts of a realm: the client is beside the KDC
TUN = 'wire0'
TUN_ADDRESSES = {host: f'198.51.100.{number}' for number, host in enumerate(REALM, 1)}

MTU = 1500                  # bytes of an IP packet: what the servers' operators will have
ETHERNET_BYTES = 38         # what a frame adds to it on the cable
COUNTED = {TUN: 0, network.CABLE: 14}   # of these, what tbf sees
TCP_HEADERS = 52            # bytes of each packet: IPv4 20, TCP 20, its time stamps 12
SEGMENT_BYTES = 16384       # what TCP hands to a device at once; see README.md
IPERF_PORT, PROBE_PORT = 5201, 5001
QUEUE_BYTES = 4 << 20       # of tbf: TCP stops by itself long before (small queues)

# What a run may look like and still be the line's doing; see doubts().
LATE_SHARE, LATE_LEAST_US = 0.1, 40     # half of the packets; of the delay, or microseconds
LATEST_SHARE, LATEST_LEAST_US = 0.5, 250    # 99 % of them
RELAY_CPU_SHARE = 0.85
AIMS = 4                    # tries to hit a round trip


@dataclasses.dataclass(frozen=True)
class Line:
    """mbit 0: no limit. one_way_ms None: no relay; else what the relay holds each packet back."""
    mbit: float = 0
    one_way_ms: float | None = None

    @property
    def device(self):
        return network.CABLE if self.one_way_ms is None else TUN


@dataclasses.dataclass(frozen=True)
class Kernel:
    """Settings of each namespace; None leaves the kernel's. Sockets may set their own."""
    congestion: str | None = 'cubic'
    buffer_bytes: int | None = 16 << 20     # the most that a socket's buffer may grow to, each way
    slow_start_after_idle: bool = False

    def sysctls(self):
        settings = {'net.ipv4.tcp_slow_start_after_idle': int(self.slow_start_after_idle),
                    'net.ipv4.tcp_no_metrics_save': 1}  # one run must not teach the next
        if self.buffer_bytes:
            for way, usual in (('rmem', 131072), ('wmem', 16384)):
                settings[f'net.ipv4.tcp_{way}'] = f'4096 {usual} {self.buffer_bytes}'
        return settings


def missing():
    """Why this machine cannot make such lines, or None."""
    reason = network.missing_rights()
    if reason:
        return reason
    if not pathlib.Path('/dev/net/tun').exists():
        return '/dev/net/tun is missing: load the kernel module tun'
    for tool, package in (('ping', 'iputils-ping'), ('iperf3', 'iperf3')):
        if not shutil.which(tool):
            return f'{tool} is missing: install {package}'
    if not RELAY.exists():
        return f'{RELAY} is missing: run `make build`'
    return None


class Wire:
    """The hosts. A context manager: all of it is gone on exit; see network.Network."""

    def __init__(self, line, kernel=Kernel(), relay_options=(), hosts=PARTIES):
        self.line, self.kernel, self.relay_options = line, kernel, relay_options
        self.hosts = hosts
        self.relay_report = None    # what the relay said when it was stopped
        self._network = network.Network()
        self._relay = None

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            undo.push(self)     # __exit__ of a network that was half made
            self._network.create()
            for host in self.hosts:
                self._prepare(host)
            if self.line.device == TUN:
                self._start_relay()
            undo.pop_all()
        return self

    def __exit__(self, *_):
        try:
            self.stop_relay()
        finally:
            self._network.remove()

    def place(self, party):
        """Where a process of this party runs; its address is on the line."""
        cable = self._network.places()[party]
        if self.line.device != TUN:
            return cable
        return daemon.Place(TUN_ADDRESSES[party], cable.command)

    def places(self):
        """For a realm (realm/realm.py) on the hosts REALM."""
        return {**{host: self.place(host) for host in self.hosts}, 'client': self.place('kdc')}

    def run(self, party, *argv, timeout=60):
        """The standard output of a command on a host."""
        return network.run(*self.place(party).argv(argv), timeout=timeout)

    def ping(self, source, destination, count=50, interval=0.01):
        """Round trip in milliseconds: {min, p50, max}; the other kernel answers, no process."""
        text = self.run(source, 'ping', '-n', '-c', count, '-i', interval,
                        self.place(destination).address, timeout=30 + count)
        times = sorted(float(t) for t in re.findall(r'time=([\d.]+) ms', text))
        if not times:
            raise network.NetworkError(f'{destination} does not answer {source}: {text}')
        return {'min': times[0], 'p50': times[len(times) // 2], 'max': times[-1],
                'lost': count - len(times)}

    def streams(self, pairs, seconds=2, warm_up=1):
        """Mb/s of TCP payload that each receiver of (source, destination) got, all at a time."""
        servers = [self._start(to, 'iperf3', '-s', '-1', '-B', self.place(to).address,
                               '-p', IPERF_PORT + n) for n, (_, to) in enumerate(pairs)]
        try:
            for n, (server, (_, to)) in enumerate(zip(servers, pairs)):
                self._await_listener(server, to, IPERF_PORT + n)
            clients = [self._start(source, 'iperf3', '-J', '-t', seconds, '-O', warm_up,
                                   '-c', self.place(to).address, '-p', IPERF_PORT + n)
                       for n, (source, to) in enumerate(pairs)]
            servers += clients
            outputs = [json.loads(client.communicate(timeout=30 + seconds)[0])
                       for client in clients]
        finally:
            for process in servers:
                process.kill()
                process.communicate()
        for output in outputs:
            if 'error' in output:
                raise network.NetworkError(f'iperf3: {output["error"]}')
        return [output['end']['sum_received']['bits_per_second'] / 1e6 for output in outputs]

    def message_ms(self, size, idle_seconds=1, buffer_bytes=0):
        """What message_probe.py saw: medians of {warm, after_idle}, from P0 to P1."""
        probe, address = HERE / 'message_probe.py', self.place('p1').address
        with self._start('p1', sys.executable, probe, 'serve', address, PROBE_PORT,
                         buffer_bytes) as server:
            try:
                if server.stdout.readline().strip() != 'ready':
                    raise network.NetworkError(f'the probe: {server.stdout.read()}')
                times = json.loads(self.run('p0', sys.executable, probe, 'ask', address, PROBE_PORT,
                                            size, idle_seconds, buffer_bytes))
            finally:
                server.kill()
        return {key: statistics.median(values) for key, values in times.items()}

    def dropped(self):
        """Packets that a device or its queue threw away, of all hosts."""
        total = 0
        for party in self.hosts:
            device = self.line.device
            link = json.loads(self.run(party, 'ip', '-j', '-s', 'link', 'show', 'dev', device))
            total += sum(link[0]['stats64'][way]['dropped'] for way in ('rx', 'tx'))
            for qdisc in json.loads(self.run(party, 'tc', '-j', '-s', 'qdisc', 'show',
                                             'dev', device)):
                total += qdisc.get('drops', 0)
        return total

    def retransmitted(self):
        """TCP segments sent again, of all hosts."""
        return sum(int(self.run(party, 'nstat', '-az', 'TcpRetransSegs').split()[-2])
                   for party in self.hosts)

    def sent(self):
        """What all hosts have sent so far, of TCP: {payload, wire} in bytes.

        IP counts a large segment once, with one header, TCP each frame that it is cut into."""
        payload = wire = 0
        for party in self.hosts:
            counted = counters(self.run(party, 'cat', '/proc/net/snmp', '/proc/net/netstat'))
            octets, packets = counted['IpExt.OutOctets'], counted['Ip.OutRequests']
            frames = counted['Tcp.OutSegs']
            payload += octets - packets * TCP_HEADERS
            wire += octets + (frames - packets) * TCP_HEADERS + frames * ETHERNET_BYTES
        return {'payload': payload, 'wire': wire}

    def stop_relay(self):
        if self._relay:
            relay, self._relay = self._relay, None
            relay.send_signal(signal.SIGTERM)
            out, errors = relay.communicate(timeout=10)
            if relay.returncode:
                raise network.NetworkError(f'wire-relay ended badly: {errors}')
            self.relay_report = json.loads(out.splitlines()[-1])

    # Inside -------------------------------------------------------------------------------------

    def _start(self, party, *argv):
        argv = self.place(party).argv(argv)
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, encoding='utf-8', errors='replace')

    def _await_listener(self, process, party, port):
        def listens():
            return process.poll() is not None or f':{port} ' in self.run(party, 'ss', '-Htln')
        if not daemon.wait_until(listens, 10) or process.poll() is not None:
            raise network.NetworkError(f'iperf3 does not listen on {party}')

    def _prepare(self, party):
        for name, value in self.kernel.sysctls().items():
            self.run(party, 'sysctl', '-q', '-w', f'{name}={value}')
        device = self.line.device
        if device == TUN:
            self.run(party, 'ip', 'tuntap', 'add', 'dev', TUN, 'mode', 'tun', 'vnet_hdr')
            self.run(party, 'ip', 'address', 'add', f'{TUN_ADDRESSES[party]}/24', 'dev', TUN)
            self.run(party, 'ip', 'link', 'set', TUN, 'mtu', MTU, 'up')
        self.run(party, 'ip', 'link', 'set', device, 'gso_max_size', SEGMENT_BYTES)
        if self.kernel.congestion:
            # By route: the sysctl of a namespace takes only what the machine allows to all users.
            address = self.place(party).address
            subnet = address.rpartition('.')[0] + '.0/24'
            self.run(party, 'ip', 'route', 'replace', subnet, 'dev', device, 'proto', 'kernel',
                     'scope', 'link', 'src', address, 'congctl', self.kernel.congestion)
        if self.line.mbit:
            counted = MTU + COUNTED[device]
            rate = self.line.mbit * 1e6 * counted / (MTU + ETHERNET_BYTES)
            self.run(party, 'tc', 'qdisc', 'add', 'dev', device, 'root', 'tbf',
                     'rate', f'{rate:.0f}bit', 'burst', SEGMENT_BYTES * 5 // 4,
                     'limit', QUEUE_BYTES)

    def _start_relay(self):
        # The namespace's name is the last word of the command that enters it.
        ports = ','.join(f'{self.place(party).command[-1]}={TUN_ADDRESSES[party]}'
                         for party in self.hosts)
        self._relay = subprocess.Popen(
            [str(RELAY), f'--ports={ports}', f'--delay_ms={self.line.one_way_ms}',
             f'--mbit={self.line.mbit}', *self.relay_options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8')
        if self._relay.stdout.readline().strip() != 'ready':
            relay, self._relay = self._relay, None
            _, errors = relay.communicate(timeout=10)
            raise network.NetworkError(f'wire-relay: {errors.strip()}')


def counters(text):
    """/proc/net/snmp and netstat: a line of names, then one of numbers, per protocol."""
    found = {}
    rows = [line.split() for line in text.splitlines()]
    for names, numbers in zip(rows[::2], rows[1::2]):
        for name, number in zip(names[1:], numbers[1:]):
            found[f'{names[0].rstrip(":")}.{name}'] = int(number)
    return found


def aim(mbit, round_trip_ms, kernel=Kernel()):
    """The line whose ping takes this long. (line, ping)

    The hosts and the relay's waking up take some 60 us of a round trip, which matters when that
    shall be 0.13 ms: so it is measured, and the relay holds packets back for so much less."""
    line = Line(mbit, round_trip_ms / 2)
    for _ in range(AIMS):
        with Wire(line, kernel) as wire:
            ping = wire.ping('p0', 'p1', count=200, interval=0.002)
        off = ping['p50'] - round_trip_ms
        if abs(off) < 0.02 * round_trip_ms or (off > 0 and line.one_way_ms == 0):
            break
        line = dataclasses.replace(line, one_way_ms=max(line.one_way_ms - off / 2, 0))
    return line, ping


def doubts(line, report, dropped=0):
    """Why a run's figures are the relay's or a queue's, and not the line's: a list of reasons."""
    reasons = [f'{dropped} packets dropped by the devices'] if dropped else []
    if report is None:
        return reasons
    lost = sum(port['dropped'] + port['refused'] for port in report['ports'])
    if lost:
        reasons.append(f'the relay lost {lost} packets')
    delay_us = 1000 * line.one_way_ms
    for quantile, share, least in (('p50', LATE_SHARE, LATE_LEAST_US),
                                   ('p99', LATEST_SHARE, LATEST_LEAST_US)):
        late = report['late_us'][quantile]
        if late > max(least, share * delay_us):
            reasons.append(f'the relay delivered late: {quantile} {late:.0f} us')
    if report['cpu_share'] > RELAY_CPU_SHARE:
        reasons.append(f'the relay was busy {100 * report["cpu_share"]:.0f} % of the time')
    return reasons
