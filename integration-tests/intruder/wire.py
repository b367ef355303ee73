# SPDX-License-Identifier: Apache-2.0
"""The wire between a KDC and the three servers, without any of our KDC's code.

Only the .proto files are shared with the servers: whoever has a KDC's certificate and key can say
what is said here, and nothing keeps him from saying other things to each of the three.
"""

import functools
import os
import queue
import subprocess
import sys
import threading

import grpc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import config_files

PATIENCE = 10  # seconds for an answer


@functools.lru_cache(maxsize=None)
def messages():
    """The modules (kdc_key, admin) that protoc makes of our .proto files."""
    folder = config_files.BUILD / 'proto-python'
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(['protoc', f'--proto_path={config_files.REPOSITORY}', f'--python_out={folder}',
                    'proto/kdc_key.proto', 'proto/admin.proto'], check=True,
                   cwd=config_files.REPOSITORY)
    sys.path.insert(0, str(folder))
    try:
        from proto import admin_pb2, kdc_key_pb2
    finally:
        sys.path.remove(str(folder))
    return kdc_key_pb2, admin_pb2


def secure_channel(port, ca, certificate, key):
    credentials = grpc.ssl_channel_credentials(ca.read_bytes(), key.read_bytes(),
                                               certificate.read_bytes())
    return grpc.secure_channel(f'127.0.0.1:{port}', credentials)


class Stream:
    """One KDC stream to one server. Everything that passes is kept in `transcript`."""

    def __init__(self, channel, realm_name, session, transcript):
        self._messages = messages()[0]
        self._transcript = transcript
        self._outgoing = queue.Queue()
        self._changed = threading.Condition()
        self._answers = {}  # job id, or (job id, seal): all answers that came
        self.error = None
        self._call = channel.stream_stream(
            '/mpckdc.v1.KeyService/Serve',
            request_serializer=self._sent,
            response_deserializer=self._received)(iter(self._outgoing.get, None))
        hello = self._messages.Hello(min_version=2, max_version=2, session=session,
                                     realm=realm_name, software='intruder')
        self._outgoing.put(self._messages.KdcMessage(hello=hello))
        threading.Thread(target=self._read, daemon=True).start()

    def _sent(self, message):
        data = message.SerializeToString()
        self._transcript.append(data)
        return data

    def _received(self, data):
        self._transcript.append(data)
        return self._messages.ServerMessage.FromString(data)

    def _read(self):
        try:
            for message in self._call:
                with self._changed:
                    for job in message.jobs:
                        self._answers.setdefault(job.id, []).append(job)
                    for tag in message.tags:
                        self._answers.setdefault((tag.job, tag.seal), []).append(tag)
                    self._changed.notify_all()
        except grpc.RpcError as error:
            with self._changed:
                self.error = error
                self._changed.notify_all()

    def send_job(self, job):
        self._outgoing.put(self._messages.KdcMessage(jobs=[job]))

    def send_tag(self, request):
        self._outgoing.put(self._messages.KdcMessage(tags=[request]))

    def answer(self, key, number=0, patience=PATIENCE):
        """The answer with that number to a job or tag request; None when none comes."""
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._answers.get(key, [])) > number or self.error, patience)
            come = self._answers.get(key, [])
            return come[number] if len(come) > number else None

    def close(self):
        self._outgoing.put(None)
        self._call.cancel()


class Servers:
    """A KDC's streams to the three, under one session."""

    def __init__(self, live, certificate, key, session=None):
        self._live = live
        self._paths = live.dir / 'ca/ca.pem', certificate, key
        self.session = session or os.urandom(16)
        self.transcript = []
        self.next_id = 0
        self._connect()

    def _connect(self):
        self.channels = [secure_channel(port, *self._paths) for port in self._live.ports.clients]
        self.streams = [Stream(channel, self._live.name, self.session, self.transcript)
                        for channel in self.channels]

    def reconnect(self):
        self.close()
        self._connect()

    def reconnect_if_broken(self):
        """A server ends the stream of a KDC that breaks the protocol."""
        if any(stream.error for stream in self.streams):
            self.reconnect()

    def close(self):
        for stream, channel in zip(self.streams, self.channels):
            stream.close()
            channel.close()

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def ask(self, jobs, number=0):
        """Sends one job to all, or a list of three jobs, one to each; the three answers."""
        three = jobs if isinstance(jobs, list) else [jobs] * 3
        for stream, job in zip(self.streams, three):
            stream.send_job(job)
        return [stream.answer(job.id, number) for stream, job in zip(self.streams, three)]

    def ask_tags(self, requests, number=0):
        three = requests if isinstance(requests, list) else [requests] * 3
        for stream, request in zip(self.streams, three):
            stream.send_tag(request)
        return [stream.answer((request.job, request.seal), number)
                for stream, request in zip(self.streams, three)]

    def call_admin(self, party, method, request, reply_type):
        """One call of AdminService with this certificate."""
        return self.channels[party].unary_unary(
            f'/mpckdc.v1.AdminService/{method}',
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply_type.FromString)(request, timeout=PATIENCE)


def verdict(answer):
    """'OK', 'REPLAY', ...; 'no answer'."""
    if answer is None:
        return 'no answer'
    return messages()[0].Verdict.Name(answer.verdict)[len('VERDICT_'):]


def all_ok(answers):
    return all(verdict(answer) == 'OK' for answer in answers)


def keystream_of_seal(answers, seal):
    return combine(answers, 2 << 8 | seal, [a.seals[seal].keystream_share for a in answers])


def keystream_of_open(answers):
    return combine(answers, 1 << 8, [a.opens[0].keystream_share for a in answers])


def mac_of(answers):
    return combine(answers, 3 << 8, [a.make_macs[0].tag_share for a in answers])


def tag_of(answers):
    return combine(answers, 4 << 8, [a.tag_share for a in answers])


def combine(answers, number, shares):
    """What the three servers' shares of one output come to, whether or not the servers contradict
    each other. See mpc-server/key/output_format.h."""
    out = bytes(len(shares[0]))
    for answer, share in zip(answers, shares):
        counter = number.to_bytes(4, 'big') + bytes(12)
        stream = Cipher(algorithms.AES(answer.keys[:16]), modes.CTR(counter)).encryptor()
        out = bytes(a ^ b for a, b in zip(out, stream.update(share)))
    return out
