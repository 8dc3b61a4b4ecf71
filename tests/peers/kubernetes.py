# SPDX-License-Identifier: Apache-2.0
"""As much of the API server of Kubernetes as k8s_attributes asks for: it lists and watches pods, which never change.

    with Kubernetes([pod("shop", "web-1", {"nginx": ID})]) as api:
        api.kubeconfig                  the text of a file for its clients
        api.paths                       what was asked for
"""

import http.server
import json
import threading
import urllib.parse

VERSION = {"resourceVersion": "1"}
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: test
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
clusters: [{{name: test, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: test, user: {{}}}}]
"""


def pod(namespace, name, containers):
    """containers: {name: id}, as containerd runs them."""
    return {
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", **VERSION},
        "spec": {"containers": [{"name": container, "image": f"example/{container}:1"} for container in containers]},
        "status": {"podIP": "192.0.2.1", "containerStatuses": [
            {"name": container, "containerID": f"containerd://{text}", "restartCount": 0} for container, text in containers.items()]},
    }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, data):
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def watch(self, events):
        """Nothing follows these events until the end of the test."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(json.dumps(event).encode() + b"\n")
        self.wfile.flush()
        self.server.is_over.wait()
        self.close_connection = True

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        self.server.paths.add(url.path)
        if url.path != "/api/v1/pods":
            self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
        elif "watch" not in query:
            self.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": VERSION, "items": self.server.pods})
        elif "sendInitialEvents" not in query:
            self.watch([])
        else:
            end = {"kind": "Pod", "apiVersion": "v1",
                   "metadata": {**VERSION, "annotations": {"k8s.io/initial-events-end": "true"}}}
            self.watch([*({"type": "ADDED", "object": item} for item in self.server.pods), {"type": "BOOKMARK", "object": end}])


class Kubernetes:
    def __init__(self, pods):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.pods, self.server.paths, self.server.is_over = pods, set(), threading.Event()
        self.kubeconfig = KUBECONFIG.format(port=self.server.server_port)
        self.thread = threading.Thread(target=self.server.serve_forever)

    @property
    def paths(self):
        return self.server.paths

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.is_over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
