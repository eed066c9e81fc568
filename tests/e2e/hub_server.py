"""A local HTTP server that answers as the hub does, with faults on request: cuts, redirects, 401, 404, 429, lies."""

import hashlib
import http.server
import json
import threading
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub:
    """Serves `files` (path -> bytes) of one repository. Fault switches are attributes; `requests` counts paths."""

    def __init__(self, repository, files, lfs=(".onnx", "_data", ".gguf", ".safetensors")):
        self.repository, self.files, self.lfs = repository, dict(files), lfs
        self.requests, self.ranges, self.tokens_at_storage = [], [], []
        self.token = None  # required on the hub's own paths
        self.cut_after = {}  # path -> list of byte counts after which a response is cut, used up one by one
        self.too_many = {}  # path -> how often to answer 429 first
        self.wrong_bytes = set()  # paths whose content differs from the listing's hash
        self.wrong_size = {}  # path -> bytes added to the end of the response
        self.ignore_ranges = False
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def etag(self, path):
        data = self.files[path]
        return hashlib.sha256(data).hexdigest() if path.endswith(self.lfs) else git_blob_id(data)

    def listing(self):
        siblings = []
        for path, data in self.files.items():
            entry = {"rfilename": path, "size": len(data), "blobId": git_blob_id(data)}
            if path.endswith(self.lfs):
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            siblings.append(entry)
        return {"id": self.repository, "sha": COMMIT, "siblings": siblings}

    def _handler(hub):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def send(self, code, body=b"", headers=()):
                self.send_response(code)
                for key, value in headers:
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                path = urllib.parse.unquote(urllib.parse.urlparse(self.path).path)
                with hub.lock:
                    hub.requests.append(path)
                storage = "/storage/"
                if path.startswith(storage):
                    return self.send_file(path[len(storage) :])
                if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
                    return self.send(401, b"{}")
                if path.startswith(f"/api/models/{hub.repository}/revision/"):
                    if path.rsplit("/", 1)[1] not in ("main", COMMIT):
                        return self.send(404, b"{}")
                    return self.send(200, json.dumps(hub.listing()).encode())
                prefix = f"/{hub.repository}/resolve/{COMMIT}/"
                if not path.startswith(prefix) or path[len(prefix) :] not in hub.files:
                    return self.send(404, b"{}")
                file = path[len(prefix) :]
                with hub.lock:
                    busy = hub.too_many.get(file, 0)
                    hub.too_many[file] = busy - 1
                if busy > 0:
                    return self.send(429, b"", [("Retry-After", "1")])
                if file.endswith(hub.lfs):  # large files live on another host
                    other = hub.url.replace("127.0.0.1", "localhost")
                    return self.send(302, b"", [("Location", f"{other}{storage}{urllib.parse.quote(file)}")])
                self.send_file(file)

            def send_file(self, file):
                data = hub.files[file]
                if file in hub.wrong_bytes:
                    data = bytes(len(data))
                data += b"x" * hub.wrong_size.get(file, 0)
                start = 0
                with hub.lock:
                    if self.path.startswith("/storage/"):
                        hub.tokens_at_storage.append(self.headers.get("Authorization"))
                    wanted = self.headers.get("Range")
                    if wanted and not hub.ignore_ranges:
                        start = int(wanted.removeprefix("bytes=").rstrip("-"))
                        hub.ranges.append((file, start))
                    cuts = hub.cut_after.get(file, [])
                    cut = cuts.pop(0) if cuts else None
                self.send_response(206 if start else 200)
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
                self.send_header("Content-Length", str(len(data) - start))
                self.end_headers()
                body = data[start:]
                self.wfile.write(body if cut is None else body[:cut])
                if cut is not None:
                    self.wfile.flush()
                    self.close_connection = True

        return Handler
