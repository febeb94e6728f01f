"""Stands for ssh and sshd, so that a test may cut the connection between two hosts.

ssh_stand_in.py --serve       runs what comes on port 2222, each connection as standard input and output of one command
ssh_stand_in.py HOST WORDS... has that done on HOST"""
import os
import select
import socket
import sys

PORT = 2222


def serve():
    listener = socket.create_server(("", PORT))
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            line = b""
            while not line.endswith(b"\n"):
                line += connection.recv(1)
            os.dup2(connection.fileno(), 0)
            os.dup2(connection.fileno(), 1)
            os.execvp("sh", ["sh", "-c", line.decode()])


def pass_on(host, words):
    connection = socket.create_connection((host, PORT))
    connection.sendall(" ".join(words).encode() + b"\n")
    sources = {0: connection.fileno(), connection.fileno(): 1}
    while True:
        for source in select.select(list(sources), [], [])[0]:
            data = os.read(source, 65536)
            if not data:
                return
            while data:
                data = data[os.write(sources[source], data):]


if __name__ == "__main__":
    serve() if sys.argv[1] == "--serve" else pass_on(sys.argv[1], sys.argv[2:])
