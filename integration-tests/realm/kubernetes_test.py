# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes: rendered by kustomize, held against Kubernetes' own schemas, and against what its README
promises. No cluster runs here: that it is well-formed and closed is shown, that it runs is not."""

import copy
import json
import shutil
import subprocess
import tomllib

import pytest

import config_files
import deploy_tools

KUBERNETES = config_files.REPOSITORY / 'deploy/kubernetes'
# kubernetes-validate carries the schemas; of the oldest and the newest version that this is for.
VERSIONS = ('1.29.0', '1.37.0')
OVERLAYS = ('parties/p0', 'parties/p1', 'parties/p2', 'kdc', 'trial')
# Resources of others, which have no schema there.
FOREIGN = {'cert-manager.io/v1'}


@pytest.fixture(scope='session')
def tools():
    return deploy_tools.programs()


@pytest.fixture(scope='session')
def kustomize():
    """The command that renders a folder: kubectl's, if it is new enough for components, or kustomize itself."""
    if shutil.which('kubectl'):
        version = subprocess.run(['kubectl', 'version', '--client'], capture_output=True, encoding='utf-8').stdout
        if 'Kustomize Version: v5' in version:
            return ['kubectl', 'kustomize']
    if shutil.which('kustomize'):
        return ['kustomize', 'build']
    pytest.skip('neither kubectl with kustomize v5 nor kustomize is installed')


@pytest.fixture(scope='session')
def render(kustomize):
    """render(folder) -> the resources."""
    known = {}

    def read(folder):
        if folder not in known:
            done = subprocess.run([*kustomize, KUBERNETES / folder], capture_output=True, encoding='utf-8')
            assert done.returncode == 0, done.stderr
            known[folder] = deploy_tools.read_yaml(done.stdout)
        return copy.deepcopy(known[folder])
    return read


@pytest.fixture
def validate(tools, tmp_path):
    """validate(resources, version) -> what the schemas say against them."""
    def judge(resources, version):
        files = []
        for number, resource in enumerate(resources):
            if resource['apiVersion'] not in FOREIGN:
                files.append(tmp_path / f'{number}.json')
                files[-1].write_text(json.dumps(resource))
        done = subprocess.run([tools / 'kubernetes-validate', '-k', version, '--strict', '--quiet', *files],
                              capture_output=True, encoding='utf-8')
        return done.stdout + done.stderr if done.returncode else ''
    return judge


def of_kind(resources, kind):
    return [resource for resource in resources if resource['kind'] == kind]


def fits(selector, labels):
    return bool(selector) and selector.items() <= labels.items()


def faults(resources):
    """What the README promises of the resources and does not hold."""
    found = []
    sets = of_kind(resources, 'StatefulSet')
    for each in sets:
        found += faults_of_set(each, resources)
    for policy in of_kind(resources, 'NetworkPolicy'):
        found += faults_of_policy(policy)
    for each in sets:
        namespace, labels = each['metadata']['namespace'], each['spec']['template']['metadata']['labels']
        here = [r for r in resources if r['metadata'].get('namespace') == namespace]
        closed = [p for p in of_kind(here, 'NetworkPolicy') if p['spec']['podSelector'] == {}
                  and set(p['spec']['policyTypes']) == {'Ingress', 'Egress'}
                  and not p['spec'].get('ingress') and not p['spec'].get('egress')]
        if not closed:
            found.append(f'{namespace}: what no policy names is not refused')
        budgets = [b for b in of_kind(here, 'PodDisruptionBudget')
                   if fits(b['spec']['selector']['matchLabels'], labels) and b['spec'].get('minAvailable') == 1]
        if not budgets:
            found.append(f'{namespace}: no disruption budget is for {each["metadata"]["name"]}')
        for other in of_kind(here, 'Service') + [p for p in of_kind(here, 'NetworkPolicy')
                                                 if p['spec']['podSelector']]:
            selector = other['spec'].get('selector') or other['spec']['podSelector']['matchLabels']
            if not fits(selector, labels):
                found.append(f'{namespace}: {other["kind"]} {other["metadata"]["name"]} selects no pod')
    return found


def faults_of_set(each, resources):
    name, pod = each['metadata']['name'], each['spec']['template']['spec']
    found = []
    if each['spec']['replicas'] != 1:
        found.append(f'{name}: several pods would share a store')
    if pod.get('automountServiceAccountToken') is not False:
        found.append(f'{name}: has a token of the cluster')
    if not pod['securityContext'].get('runAsNonRoot') or pod['securityContext'].get('runAsUser', 0) == 0:
        found.append(f'{name}: may run as root')
    if pod['securityContext'].get('fsGroupChangePolicy') != 'OnRootMismatch':
        found.append(f'{name}: the kubelet would open the store to its group')
    services = [s['metadata']['name'] for s in of_kind(resources, 'Service')
                if s['metadata'].get('namespace') == each['metadata']['namespace']
                and s['spec'].get('clusterIP') == 'None']
    if each['spec']['serviceName'] not in services:
        found.append(f'{name}: its headless service is missing')
    volumes = {v['name'] for v in pod['volumes']} | {
        v['metadata']['name'] for v in each['spec']['volumeClaimTemplates']}
    maps = {m['metadata']['name'] for m in of_kind(resources, 'ConfigMap')}
    for volume in pod['volumes']:
        if 'configMap' in volume and volume['configMap']['name'] not in maps:
            found.append(f'{name}: the ConfigMap {volume["configMap"]["name"]} is missing')
        if 'secret' in volume and volume['secret'].get('defaultMode') != 0o440:
            found.append(f'{name}: others can read the secret {volume["name"]}')
    for container in pod['containers']:
        found += faults_of_container(name, container, volumes)
    return found


def faults_of_container(name, container, volumes):
    found, context = [], container.get('securityContext', {})
    name = f'{name}/{container["name"]}'
    if context.get('allowPrivilegeEscalation') is not False:
        found.append(f'{name}: may gain privileges')
    if context.get('readOnlyRootFilesystem') is not True:
        found.append(f'{name}: may write into its image')
    if context.get('capabilities', {}).get('drop') != ['ALL'] or context['capabilities'].get('add'):
        found.append(f'{name}: has capabilities')
    for probe in 'startupProbe', 'livenessProbe', 'readinessProbe':
        if probe not in container:
            found.append(f'{name}: has no {probe}')
    if '--health=serves' in str(container.get('livenessProbe')):
        found.append(f'{name}: is restarted when another party is away')
    if 'memory' not in container.get('resources', {}).get('limits', {}):
        found.append(f'{name}: has no limit of memory')
    for mount in container['volumeMounts']:
        if mount['name'] not in volumes:
            found.append(f'{name}: the volume {mount["name"]} is missing')
        if 'identity' in mount['name'] and ('subPath' in mount or not mount.get('readOnly')):
            found.append(f'{name}: would not see a renewed certificate, or could write one')
    return found


def faults_of_policy(policy):
    """An empty list of sources is everybody."""
    found, name = [], policy['metadata']['name']
    for way, who in (('ingress', 'from'), ('egress', 'to')):
        for rule in policy['spec'].get(way) or []:
            if not rule.get(who):
                found.append(f'{name}: {way} {who} anybody')
            if not rule.get('ports'):
                found.append(f'{name}: {way} at every port')
    return found


@pytest.mark.parametrize('version', VERSIONS)
@pytest.mark.parametrize('folder', OVERLAYS)
def test_schemas(render, validate, folder, version):
    assert validate(render(folder), version) == ''


@pytest.mark.parametrize('folder', OVERLAYS)
def test_promises(render, folder):
    assert faults(render(folder)) == []


def at(resources, kind, name, *path):
    """What lies there, but for the last step; and that."""
    here = next(r for r in of_kind(resources, kind) if r['metadata']['name'] == name)
    for step in path[:-1]:
        here = here[step]
    return here, path[-1]


CONTAINER = ('StatefulSet', 'mpc-server', 'spec', 'template', 'spec', 'containers', 0)
MISSPELT = [
    (('StatefulSet', 'mpc-server', 'spec', 'replica'), 1),
    (('StatefulSet', 'mpc-server', 'spec', 'replicas'), 'one'),
    ((*CONTAINER, 'readynessProbe'), {}),
    ((*CONTAINER, 'livenessProbe', 'grcp'), {'port': 7750}),
    (('NetworkPolicy', 'peers', 'spec', 'ingres'), []),
    (('PodDisruptionBudget', 'mpc-server', 'spec', 'minAvailabel'), 1),
    (('Service', 'mpc-peers', 'spec', 'ports', 0, 'port'), 'seven'),
]


@pytest.mark.parametrize('where, what', MISSPELT, ids=[str(where[-1]) for where, _ in MISSPELT])
def test_the_schemas_see_what_is_misspelt(render, validate, where, what):
    resources = render('parties/p0')
    place, last = at(resources, *where)
    place[last] = what
    said = validate(resources, VERSIONS[-1])
    assert str(last) in said or str(what) in said, said


BROKEN = [
    (('StatefulSet', 'mpc-server', 'spec', 'template', 'spec', 'securityContext', 'runAsUser'), 0, 'root'),
    (('StatefulSet', 'mpc-server', 'spec', 'template', 'spec', 'securityContext', 'fsGroupChangePolicy'),
     'Always', 'open the store'),
    (('StatefulSet', 'mpc-server', 'spec', 'replicas'), 2, 'share a store'),
    (('StatefulSet', 'mpc-server', 'spec', 'template', 'metadata', 'labels'), {'app': 'x'}, 'selects no pod'),
    (('StatefulSet', 'mpc-server', 'spec', 'serviceName'), 'other', 'headless'),
    ((*CONTAINER, 'securityContext', 'readOnlyRootFilesystem'), False, 'write into its image'),
    ((*CONTAINER, 'securityContext', 'capabilities'), {'drop': ['ALL'], 'add': ['SYS_ADMIN']}, 'capabilities'),
    ((*CONTAINER, 'livenessProbe', 'exec', 'command', 2), '--health=serves', 'is restarted'),
    ((*CONTAINER, 'volumeMounts', 1, 'subPath'), 'tls.crt', 'renewed certificate'),
    (('NetworkPolicy', 'peers', 'spec', 'ingress', 0, 'from'), [], 'anybody'),
    (('NetworkPolicy', 'callers', 'spec', 'ingress', 0, 'ports'), [], 'every port'),
    (('NetworkPolicy', 'nothing-else', 'spec', 'policyTypes'), ['Ingress'], 'is not refused'),
    (('PodDisruptionBudget', 'mpc-server', 'spec', 'minAvailable'), 0, 'disruption'),
]


@pytest.mark.parametrize('where, what, said', BROKEN, ids=[said for _, _, said in BROKEN])
def test_broken_promises_are_seen(render, where, what, said):
    resources = render('parties/p0')
    place, last = at(resources, *where)
    place[last] = what
    assert any(said in fault for fault in faults(resources)), faults(resources)


def test_each_party_names_the_others(render):
    """Who calls whom, in configuration and policies alike: party i calls i + 1."""
    peers = {}
    for party in range(3):
        resources = render(f'parties/p{party}')
        config = tomllib.loads(of_kind(resources, 'ConfigMap')[0]['data']['mpc-server.toml'])
        assert config['party'] == party
        peers[party] = [config['peers'][f'p{other}'].rsplit(':', 1)[0] for other in range(3)]
        policy = next(p for p in of_kind(resources, 'NetworkPolicy') if p['metadata']['name'] == 'peers')
        called = policy['spec']['egress'][0]['to'][0]['ipBlock']['cidr']
        calls = policy['spec']['ingress'][0]['from'][0]['ipBlock']['cidr']
        assert called == f'{peers[party][(party + 1) % 3]}/32'
        assert calls == f'{peers[party][(party + 2) % 3]}/32'
    assert peers[0] == peers[1] == peers[2] and len(set(peers[0])) == 3


@pytest.mark.parametrize('folder', ['parties/p0', 'parties/p1', 'parties/p2', 'trial/p0', 'trial/p1', 'trial/p2'])
def test_configurations_are_read(folder, tmp_path):
    """By mpc-server itself: what is wrong with them is the certificate alone, which is not there."""
    done = subprocess.run([config_files.mpc_program('mpc-server'), '--config',
                           KUBERNETES / folder / 'mpc-server.toml', '--check-config'],
                          capture_output=True, encoding='utf-8')
    assert done.returncode == 2
    assert '/etc/mpc-kdc-identity/tls.crt' in done.stderr, done.stderr
