#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An orchestrator of Rollcall, on Python's standard library alone.

Queues the tasks of a JSONL file as one run, each with a file that is put once under its sha256; takes the results as they
come, fetches what the sessions wrote, and counts. It may be killed at any moment and started again with the same arguments: every
request may be sent twice, and what has been done for a result is noted in --state, in the transaction that does it. Keep that
file with the run: results that were acknowledged do not come again.

Environment: ROLLCALL_API_URL (http://127.0.0.1:8080), ROLLCALL_API_KEY_FILE (a file that holds the key).
Exit: 0 all results are taken care of; 1 the API refused something, or could not be reached for --patience seconds; 2 usage.
"""
import argparse
import hashlib
import http.client
import json
import os
import random
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PIECE = 1 << 16
RANGE = 1 << 24
AGAIN = (429, 502, 503, 504)


class Problem(Exception):
    """An answer that is no success, as problem+json tells it."""

    def __init__(self, error):
        try:
            told = dict(json.loads(error.read()))
        except (ValueError, TypeError, OSError, http.client.HTTPException):
            told = {}  # not from the server, but from something in between
        lines = ["%d %s: %s" % (error.code, told.get("code", error.reason), told.get("detail", ""))]
        for each in told.get("errors", []):
            accepted = "; expected %s" % each["accepted"] if each.get("accepted") else ""
            lines.append("  %s: %s (%s)%s" % (each["path"] or "(body)", each["message"], each["code"], accepted))
        if "request_id" in told:
            lines.append("  in the server's log: request_id %s" % told["request_id"])
        super().__init__("\n".join(lines))


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """The API has none, and the key must not follow one to another host."""

    def redirect_request(self, *_):
        return None


class Api:
    def __init__(self, url, key, patience):
        self.url, self.key, self.patience = url.rstrip("/"), key, patience
        self.opener = urllib.request.build_opener(NoRedirects)

    def call(self, method, path, body=None, read=lambda answer: json.load(answer), headers=(), timeout=60):
        """Sends a request until it is answered, and gives what `read` makes of the answer.

        `body` makes the request's body anew each time: JSON, or a function that opens a file. Raises Problem for an answer
        that asking again will not change, and the last error when `patience` is over.
        """
        give_up = time.monotonic() + self.patience
        tried = 0
        while True:
            try:
                with self._open(method, path, body, dict(headers), timeout) as answer:
                    return read(answer)
            except urllib.error.HTTPError as error:
                problem = Problem(error)
                if error.code not in AGAIN or time.monotonic() > give_up:
                    raise problem
                asked = error.headers.get("Retry-After", "")
                pause, why = float(asked) if asked.isdigit() else 0, str(problem)
            except (OSError, http.client.HTTPException) as error:  # refused, reset, cut off, timed out
                if time.monotonic() > give_up:
                    raise
                pause, why = 0, repr(error)
            tried += 1
            pause = max(pause, random.uniform(0.5, 1) * min(30, 0.25 * 2**tried))
            print("%s %s: again in %.1f s: %s" % (method, path, pause, why), file=sys.stderr)
            time.sleep(pause)

    def _open(self, method, path, body, headers, timeout):
        data = body() if callable(body) else None if body is None else json.dumps(body).encode()
        headers.setdefault("Content-Type", "application/json")
        headers["Authorization"] = "Bearer " + self.key
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            return self.opener.open(request, timeout=timeout)
        finally:
            if hasattr(data, "close"):
                data.close()


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(PIECE), b""):
            digest.update(piece)
    return digest.hexdigest()


def put_file(api, path):
    """Puts it under its sha256, and gives the name by which activations ask for it."""
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(os.path.getsize(path))}
    put = api.call("PUT", "/v1/files/" + sha256_of(path), lambda: open(path, "rb"), headers=headers, timeout=600)
    return put["artifact"]


def activations_of(args, artifact):
    """The same at each start: ids from the run's name and the tasks' own."""
    model = {"name": args.model}
    if args.model_base_url:
        model["base_url"] = args.model_base_url
    with open(args.tasks, encoding="utf-8") as lines:
        for task in (json.loads(line) for line in lines if line.strip()):
            yield {
                "activation_id": "%s-%s" % (args.run, task["task_id"]["task_id"]),
                "run_id": args.run,
                "reply_to": "results-" + args.run,
                "model": model,
                "sandbox": {"files": [{"path": os.path.basename(args.file), "artifact": artifact}]},
                "outputs": {"paths": ["*.txt"]},
                **task,
            }


def enqueue(api, activations):
    """All or nothing for each thousand; one that is there already is joined."""
    ids = []
    for first in range(0, len(activations), 1000):
        for each in api.call("POST", "/v1/activations", activations[first : first + 1000])["activations"]:
            print("%s %s" % (each["activation_id"], each["outcome"]))
            ids.append(each["activation_id"])
    return ids


def fetch(api, url, artifact, to):
    """Fetches an artifact, going on where an earlier try was cut off. A file of its final name is whole."""
    if os.path.exists(to):
        return
    os.makedirs(os.path.dirname(to), exist_ok=True)
    part = to + ".part"
    open(part, "ab").close()
    while os.path.getsize(part) < artifact["bytes"]:
        have = os.path.getsize(part)

        def append(answer):
            with open(part, "ab") as file:
                file.truncate(have if answer.status == 206 else 0)  # this may be another try
                for piece in iter(lambda: answer.read(PIECE), b""):
                    file.write(piece)

        last = min(have + RANGE, artifact["bytes"]) - 1
        api.call("GET", url, read=append, headers={"Range": "bytes=%d-%d" % (have, last)})
    if sha256_of(part) != artifact["sha256"]:
        os.remove(part)
        raise SystemExit("%s: the bytes that came have another sha256" % url)
    os.replace(part, to)


def whole(api, delivered):
    """What was delivered, or what it refers to when it was too large for the queue."""
    if "body" not in delivered:
        return delivered
    text = api.call("GET", "/v1/activations/%s/result" % delivered["activation_id"], read=lambda answer: answer.read())
    # Run again since: the result of that generation is delivered, too. This one has its status, without details.
    return json.loads(text) if hashlib.sha256(text).hexdigest() == delivered["body"]["sha256"] else delivered


def open_state(path):
    db = sqlite3.connect(path)
    with db:
        # acked: 1 = it will not come again. receipt: of the delivery that is still to be acknowledged.
        db.execute("create table if not exists handled (result_id text primary key, activation_id text, acked int, receipt text)")
        db.execute("create table if not exists tally (status text primary key, results int)")
    return db


def handle(api, db, claimed, files):
    result_id = claimed["result_id"]
    known = db.execute("select 1 from handled where result_id = ?", (result_id,)).fetchone()
    if not known:
        result = whole(api, claimed["result"])
        attempt = result["episode_id"]["attempt"]
        # Files first: fetching them twice does no harm, a note without them would.
        for artifact in result["artifacts"]:
            if artifact["kind"] != "evidence" and not artifact["quarantined"]:
                place = "%s/%d/%s" % (result["activation_id"], attempt, artifact["path"])
                fetch(api, "/v1/artifacts/" + urllib.parse.quote(place), artifact, os.path.join(files, result_id, artifact["path"]))
    with db:  # one transaction: what the result causes, and the note that it has
        new = db.execute(
            "insert or ignore into handled values (?, ?, 0, null)", (result_id, claimed["result"]["activation_id"])
        ).rowcount
        if new:
            status = claimed["result"]["status"]
            db.execute("insert or ignore into tally values (?, 0)", (status,))
            db.execute("update tally set results = results + 1 where status = ?", (status,))
        db.execute("update handled set acked = 0, receipt = ? where result_id = ?", (claimed["receipt"], result_id))
    print("%s %s (delivery %d)" % ("handled" if new else "known already", result_id, claimed["delivery"]), flush=True)


def acknowledge(api, db, queue):
    """Acknowledges all that is handled, also what an earlier process of ours had handled."""
    rows = db.execute("select result_id, receipt from handled where acked = 0 and receipt is not null limit 1000").fetchall()
    if not rows:
        return
    acks = [{"result_id": result_id, "receipt": receipt} for result_id, receipt in rows]
    answers = api.call("POST", "/v1/results/ack", {"queue": queue, "results": acks})["results"]
    with db:
        for (result_id, receipt), answer in zip(rows, answers):
            if answer["outcome"] == "lost":  # the lease ran out: it comes again, or has gone to another process of ours
                db.execute("update handled set receipt = null where result_id = ? and receipt = ?", (result_id, receipt))
            else:
                db.execute("update handled set acked = 1 where result_id = ?", (result_id,))


def follow(api, db, args, ids):
    """Claims, handles and acknowledges until nothing of these activations can come any more."""
    queue = "results-" + args.run
    while True:
        acknowledge(api, db, queue)
        over = {each for (each,) in db.execute("select activation_id from handled where acked = 1")}
        if over.issuperset(ids):
            return
        claim = {"queue": queue, "max": 10, "wait": 30, "lease_seconds": args.lease_seconds}
        for claimed in api.call("POST", "/v1/results/claim", claim, timeout=90)["results"]:
            handle(api, db, claimed, args.files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="the run's name; the same again goes on")
    parser.add_argument("--tasks", default="examples/data/tasks.jsonl", help="one activation a line, without its run (%(default)s)")
    parser.add_argument("--file", default="examples/data/invoices.csv", help="placed before each session (%(default)s)")
    parser.add_argument("--cancel", metavar="TASK", help="cancel this task's activation once all are queued")
    parser.add_argument("--state", help="what has been done (RUN.sqlite)")
    parser.add_argument("--files", default="fetched", help="where the sessions' files go (%(default)s)")
    parser.add_argument("--model", default="gpt-5.5")
    parser.add_argument("--model-base-url")
    parser.add_argument("--lease-seconds", type=float, default=300, help="longer than ten results take (%(default)s)")
    parser.add_argument("--patience", type=float, default=600, help="seconds to go on asking a server that is away (%(default)s)")
    args = parser.parse_args()
    key_file = os.environ.get("ROLLCALL_API_KEY_FILE")
    if not key_file:
        parser.error("set ROLLCALL_API_KEY_FILE")
    with open(key_file, encoding="utf-8") as file:
        key = file.read().strip()
    api = Api(os.environ.get("ROLLCALL_API_URL", "http://127.0.0.1:8080"), key, args.patience)
    db = open_state(args.state or args.run + ".sqlite")
    try:
        ids = enqueue(api, list(activations_of(args, put_file(api, args.file))))
        if args.cancel:
            path = "/v1/activations/%s-%s?reason=not+needed" % (args.run, urllib.parse.quote(args.cancel))
            print("cancel: %s" % api.call("DELETE", path)["outcome"])
        follow(api, db, args, ids)
        run = api.call("GET", "/v1/runs/" + args.run)
    except (Problem, OSError, http.client.HTTPException) as error:
        raise SystemExit("orchestrator: %s" % error)
    else:
        tally = dict(db.execute("select status, results from tally order by status"))
    finally:
        db.close()
    print("run: %s" % json.dumps({name: run[name] for name in ("total", "waiting", "parked", "delayed", "running", "ended")}))
    print("tally: %s" % json.dumps(tally))


if __name__ == "__main__":
    main()
