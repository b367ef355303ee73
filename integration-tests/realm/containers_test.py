# SPDX-License-Identifier: Apache-2.0
"""deploy/containers: what can be said of the files without an engine; and, where podman runs containers and the
packages are built, the realm of compose.yaml itself (MPCKDC_LONG)."""

import copy
import os
import pathlib
import re
import resource
import shutil
import subprocess

import pytest

import config_files
import daemon
import deploy_tools
from long_tests import LONG

CONTAINERS = config_files.REPOSITORY / 'deploy/containers'
PACKAGES = config_files.BUILD / 'packages/bookworm'
SERVERS = {'p0', 'p1', 'p2'}


@pytest.fixture(scope='module')
def compose():
    return deploy_tools.read_yaml((CONTAINERS / 'compose.yaml').read_text())[0]


def faults(compose):
    """What README.md promises of the services, and does not hold."""
    found = []
    for name, service in compose['services'].items():
        found += [f'{name}: {fault}' for fault in faults_of(name, service, compose)]
    for name in SERVERS:
        if set(compose['services'][name]['networks']) != {'peers', 'callers'}:
            found.append(f'{name}: is in other networks')
    if not all((compose['networks'][name] or {}).get('internal') for name in ('peers', 'callers')):
        found.append('the servers reach the world')
    return found


def faults_of(name, service, compose):
    user = service.get('user', '0').split(':')[0]
    if not user.isdigit() or user == '0':
        yield 'may be root'
    if service.get('read_only') is not True:
        yield 'may write into its image'
    if service.get('cap_drop') != ['ALL'] or service.get('cap_add') or service.get('privileged'):
        yield 'has capabilities'
    if 'no-new-privileges:true' not in service.get('security_opt', []):
        yield 'may gain privileges'
    if name in SERVERS | {'kdc', 'kadmind', 'metrics'} and not service.get('healthcheck', {}).get('test'):
        yield 'has no health check'
    if service.get('environment'):
        yield 'has something in its environment, where secrets are seen'
    for volume in service.get('volumes', []):
        source, target, *mode = re.sub(r'\$\{[^}]*}', 'secrets', volume).split(':')
        if source.startswith(('.', 'secrets')) and mode != ['ro']:
            yield f'may write {target}'
        if not source.startswith(('.', 'secrets')) and source not in compose['volumes']:
            yield f'the volume {source} is missing'
        if 'identity' in target and target.endswith(('.crt', '.key')):
            yield 'would not see a renewed certificate'
        if source.startswith('.') and not (CONTAINERS / source).exists():
            yield f'{source} is missing'
        if name == 'kdc' and 'kadmin-identity' in target:
            yield "has the administrator's certificate"


def test_compose_is_what_the_readme_says(compose):
    assert faults(compose) == []


BROKEN = [
    (('services', 'p1', 'user'), '0:0', 'may be root'),
    (('services', 'p1', 'read_only'), False, 'write into its image'),
    (('services', 'kdc', 'cap_add'), ['NET_BIND_SERVICE'], 'capabilities'),
    (('services', 'kdc', 'security_opt'), [], 'gain privileges'),
    (('services', 'p2', 'healthcheck'), {}, 'no health check'),
    (('services', 'p0', 'volumes', 1), './secrets/p0:/run/identity', 'may write /run/identity'),
    (('services', 'p0', 'volumes', 0), './config/p9.toml:/etc/x:ro', 'p9.toml is missing'),
    (('services', 'p0', 'volumes', 2), 'p9-store:/var/lib/mpc-kdc', 'p9-store is missing'),
    (('services', 'kdc', 'environment'), {'PASSWORD': 'x'}, 'environment'),
    (('services', 'p0', 'networks'), ['peers', 'callers', 'clients'], 'other networks'),
    (('networks', 'peers'), {}, 'reach the world'),
]


@pytest.mark.parametrize('where, what, said', BROKEN, ids=[said for _, _, said in BROKEN])
def test_broken_promises_are_seen(compose, where, what, said):
    changed = copy.deepcopy(compose)
    place = changed
    for step in where[:-1]:
        place = place[step]
    place[where[-1]] = what
    assert any(said in fault for fault in faults(changed)), faults(changed)


def config(path):
    return subprocess.run(['docker-compose', '-f', path, 'config', '-q'], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding='utf-8')


def test_compose_is_read():
    """By Debian's docker-compose, which holds it against its schema."""
    done = config(CONTAINERS / 'compose.yaml')
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize('old, new', [('healthcheck:', 'healthcheks:'), ('read_only: true', 'read_only: maybe'),
                                      ('condition: service_healthy', 'condition: healthy')])
def test_the_schema_sees_what_is_wrong(tmp_path, old, new):
    path = config_files.replace(CONTAINERS / 'compose.yaml', old, new, into=tmp_path / 'compose.yaml')
    done = config(path)
    assert done.returncode, f'{new} is accepted'


def lint(path):
    # DL3008 wants each package's version: they are those of the folder that the image is made from.
    return subprocess.run([deploy_tools.programs() / 'hadolint', '--no-color', '--ignore', 'DL3008', path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')


def test_the_containerfile():
    done = lint(CONTAINERS / 'Containerfile')
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize('old, new, said', [
    ('USER 7750:7750\n', 'USER root\n', 'DL3002'),
    ('--no-install-recommends install mpc-server', 'install mpc-server', 'DL3015'),
    ('CMD ["krb5kdc", "-n"]', 'CMD krb5kdc -n', 'DL3025')])
def test_the_linter_sees_what_is_wrong(tmp_path, old, new, said):
    path = config_files.replace(CONTAINERS / 'Containerfile', old, new, into=tmp_path / 'Containerfile')
    done = lint(path)
    assert done.returncode and said in done.stdout, done.stdout


@pytest.mark.parametrize('party', range(3))
def test_configurations_are_read(party):
    """By mpc-server itself: what is wrong with them is the certificate alone, which is not there."""
    done = subprocess.run([config_files.mpc_program('mpc-server'), '--config', CONTAINERS / f'config/p{party}.toml',
                           '--check-config'], capture_output=True, encoding='utf-8')
    assert done.returncode == 2 and '/run/identity/tls.crt' in done.stderr, done.stderr


def make_secrets(folder):
    subprocess.run([CONTAINERS / 'make-secrets.sh', folder], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.skipif(os.geteuid() != 0, reason='root gives files to others')
def test_secrets(tmp_path):
    make_secrets(tmp_path)
    for name, uid in (('p0', 7750), ('p1', 7750), ('p2', 7750), ('kdc', 7788), ('kadmin', 7788), ('admin', 7788)):
        folder = tmp_path / name
        for file in 'tls.crt', 'tls.key', 'ca.crt':
            info = (folder / file).stat()
            assert (info.st_uid, info.st_mode & 0o777) == (uid, 0o400)
            assert (folder / file).is_symlink()
        assert oct((folder / '..data').stat().st_mode & 0o777) == '0o700'
    turned = {name: os.readlink(tmp_path / name / '..data') for name in ('p0', 'p1')}
    make_secrets(tmp_path)
    assert os.readlink(tmp_path / 'p0/..data') == turned['p0'], 'nothing ends soon'
    config_files.mpc_ca('issue', tmp_path / 'authority', '--realm', 'EXAMPLE.COM', '--role', 'peer', '--name', 'p0',
                        '--dns', 'p0', '--renew')
    make_secrets(tmp_path)
    assert os.readlink(tmp_path / 'p0/..data') != turned['p0']
    assert os.readlink(tmp_path / 'p1/..data') == turned['p1']
    assert (tmp_path / 'p0/tls.crt').read_text() == (tmp_path / 'authority/peer-p0.pem').read_text()


# With containers -------------------------------------------------------------------------------------------

PROCESSES = 4096
CONF = f'''[containers]
default_ulimits = ["nofile=4096:4096", "nproc={PROCESSES}:{PROCESSES}"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
'''


def limits():
    """podman asks for more open files than this machine may give; compose.yaml for more locked memory, perhaps; and
    runc is not let to what this shell has of processes."""
    wanted = {'nofile': resource.RLIMIT_NOFILE, 'nproc': resource.RLIMIT_NPROC, 'memlock': resource.RLIMIT_MEMLOCK}
    lines = ['services:']
    for service in deploy_tools.read_yaml((CONTAINERS / 'compose.yaml').read_text())[0]['services']:
        lines += [f'  {service}:', '    ulimits:']
        for name, number in wanted.items():
            hard = resource.getrlimit(number)[1]
            if name == 'nproc':
                hard = PROCESSES
            lines.append(f'      {name}: {{soft: {hard}, hard: {hard}}}')
    return '\n'.join(lines) + '\n'


class Podman:
    """With storage of its own, so that nothing of this machine's is touched."""

    def __init__(self, folder):
        self.dir = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'containers.conf').write_text(CONF)
        (folder / 'limits.yaml').write_text(limits())
        (folder / 'storage.conf').write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n')
        self.env = {**os.environ, 'CONTAINERS_CONF': str(folder / 'containers.conf'),
                    'CONTAINERS_STORAGE_CONF': str(folder / 'storage.conf'), 'BUILDAH_ISOLATION': 'chroot',
                    'TOOL': 'podman', 'BASE': os.environ.get('BASE', 'debootstrap'), 'FLAGS': '--isolation chroot',
                    'PATH': f'{deploy_tools.programs()}:{os.environ["PATH"]}',
                    'MPCKDC_SECRETS': str(folder / 'secrets')}

    def run(self, *arguments, check=True, stdin='', timeout=900):
        done = subprocess.run(list(map(str, arguments)), env=self.env, input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding='utf-8', timeout=timeout, cwd=CONTAINERS)
        assert not check or done.returncode == 0, f'{arguments}: {done.stdout[-3000:]}'
        return done

    def compose(self, *arguments, **options):
        return self.run('podman-compose', '-p', 'mpckdctest', '-f', CONTAINERS / 'compose.yaml', '-f',
                        self.dir / 'limits.yaml', *arguments, **options)

    def inside(self, service, *command, **options):
        return self.run('podman', 'exec', '-i', f'mpckdctest_{service}_1', *command, **options)

    def up(self):
        """What `up` does by depends_on. podman's health checks need systemd's timers, which need not be here: so
        they are run by this."""
        self.start('p0', 'p1', 'p2')
        self.once('setup', '/etc/mpc-kdc/setup.sh')
        self.start('kdc', 'kadmind', 'metrics')
        self.compose('up', '-d', '--no-deps', 'client')

    def start(self, *services):
        self.compose('up', '-d', '--no-deps', *services)
        assert daemon.wait_until(lambda: all(map(self.is_healthy, services)), 120, 1), (
            self.compose('logs', *services, check=False).stdout[-4000:])

    def once(self, service, *command, stdin=''):
        return self.compose('run', '--rm', '--no-deps', '-T', service, *command, stdin=stdin)

    def metrics(self):
        request = 'exec 3<>/dev/tcp/127.0.0.1/9100; printf "GET /metrics HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3'
        return self.inside('metrics', 'bash', '-c', request).stdout

    def is_healthy(self, service):
        state = self.run('podman', 'healthcheck', 'run', f'mpckdctest_{service}_1', check=False)
        return state.returncode == 0


@pytest.fixture(scope='module')
def podman():
    missing = [name for name in ('podman', 'runc', 'netavark', 'aardvark-dns', 'catatonit', 'iptables') if not (
        shutil.which(name) or os.path.exists(f'/usr/lib/podman/{name}'))]
    if missing:
        pytest.skip(f'{", ".join(missing)} not installed: apt-get install podman runc netavark aardvark-dns catatonit iptables')
    if not (PACKAGES / 'Packages').exists():
        pytest.skip(f'no packages in {PACKAGES}: make packages')
    # Outside of build/ they may stay from one build to the next: the base takes a minute.
    live = Podman(pathlib.Path(os.environ.get('MPCKDC_CONTAINERS', config_files.BUILD / 'containers')))
    yield live
    live.compose('down', '-v', '-t', '5', check=False)


@pytest.fixture(scope='module')
def realm(podman):
    podman.run('./build.sh', PACKAGES, stdin='')
    shutil.rmtree(podman.dir / 'secrets', ignore_errors=True)
    podman.compose('down', '-v', '-t', '5', check=False)
    make_secrets(podman.dir / 'secrets')
    podman.up()
    return podman


def enroll(realm, name, password):
    realm.once('setup', 'mpc-admin', '--config', '/etc/mpc-kdc/admin.toml', 'enroll', name, '--password-stdin',
               stdin=password + '\n')


@LONG
def test_the_realm_of_compose(realm):
    enroll(realm, 'alice', 'in a container')
    realm.inside('client', 'kinit', 'alice', stdin='in a container\n')
    assert 'krbtgt/EXAMPLE.COM@EXAMPLE.COM' in realm.inside('client', 'klist').stdout
    wrong = realm.inside('client', 'kinit', 'alice', stdin='another\n', check=False)
    assert wrong.returncode and 'Password incorrect' in wrong.stdout
    changed = realm.inside('client', 'kpasswd', 'alice', stdin='in a container\na new one\na new one\n')
    assert 'Password changed' in changed.stdout
    realm.inside('client', 'kinit', 'alice', stdin='a new one\n')
    for result in 'ok', 'wrong_password':
        assert daemon.wait_until(lambda r=result: re.search(
            rf'^mpckdc_krb5kdc_requests_total{{.*result="{r}".*type="as"}} [1-9]', realm.metrics(), re.M), 30, 1), result


@LONG
@pytest.mark.parametrize('service, uid', [('p0', 7750), ('p1', 7750), ('p2', 7750), ('kdc', 7788), ('kadmind', 7788),
                                          ('metrics', 7788), ('client', 1000)])
def test_nobody_is_root_or_writes(realm, service, uid):
    status = realm.inside(service, 'cat', '/proc/1/status').stdout
    assert re.search(rf'^Uid:\t{uid}\t{uid}\t{uid}\t{uid}$', status, re.M), status
    for line in 'CapEff:\t0000000000000000', 'CapBnd:\t0000000000000000', 'NoNewPrivs:\t1':
        assert line in status
    refused = realm.inside(service, 'sh', '-c', 'echo x > /usr/x', check=False)
    assert refused.returncode and 'Read-only file system' in refused.stdout


@LONG
def test_health(realm):
    def probe(what):
        return realm.inside('p1', 'mpc-server', '--config=/etc/mpc-kdc/mpc-server.toml', f'--health={what}',
                            check=False)
    assert probe('alive').returncode == 0 and probe('serves').returncode == 0
    realm.run('podman', 'stop', '-t', '5', 'mpckdctest_p2_1')
    try:
        assert daemon.wait_until(lambda: probe('serves').returncode == 1, 30, 1)
        assert probe('alive').returncode == 0
    finally:
        realm.run('podman', 'start', 'mpckdctest_p2_1')
    assert daemon.wait_until(lambda: probe('serves').returncode == 0, 60, 1)


@LONG
def test_a_restart_keeps_the_realm(realm):
    enroll(realm, 'bob', 'before')
    realm.compose('down', '-t', '5')
    realm.up()
    assert daemon.wait_until(
        lambda: realm.inside('client', 'kinit', 'bob', stdin='before\n', check=False).returncode == 0, 60, 1)


@LONG
def test_renewed_secrets_are_taken(realm):
    """make-secrets.sh turns the links; nothing is restarted."""
    secrets = realm.dir / 'secrets'
    config_files.mpc_ca('issue', secrets / 'authority', '--realm', 'EXAMPLE.COM', '--role', 'peer', '--name', 'p1',
                        '--dns', 'p1', '--renew')
    make_secrets(secrets)
    assert daemon.wait_until(
        lambda: 'certificate renewed' in realm.run('podman', 'logs', 'mpckdctest_p1_1').stdout, 30, 1)
