"""The server under load: against offline encode, and against a plain server around sentence-transformers.

    ./run bench serve [--model M] [--seconds 10] [--connections 32] [--drift-seconds 600] [--json FILE]

All requests are POST /v1/embeddings with one short text, on loopback, from a load generator in a process of its own: wrk where it is
installed, and a small asyncio client where a fixed rate is needed. Reported:

    offline       texts/s of SentenceEncoder.encode on the same texts
    served        requests/s at 32 connections, and its share of offline
    plain         requests/s of one process with sentence-transformers behind uvicorn, one text at a time, same model; and the ratio
    latency       p50 and p99 at 80 % of the served rate
    overload      at four times the served rate: p99 of refusals, rate of good answers as a share of the served rate, memory
    drift         memory after the run against memory after the warm-up

Client and servers share the machine's cores, so served figures are lower than with a client elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_texts import short_sentences

HERE = Path(__file__).resolve()
PLAIN = """
import sys, json, uvicorn
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    if scope["path"] == "/health":
        answer = b"{}"
    else:
        texts = json.loads(body)["input"]
        answer = json.dumps({"data": [{"embedding": row.tolist()} for row in model.encode([texts], show_progress_bar=False)]}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(answer)).encode())]})
    await send({"type": "http.response.body", "body": answer})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="critical", lifespan="off")
"""


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


def start_ours(model: str | None, *more: str) -> tuple[subprocess.Popen[bytes], int]:
    port = free_port()
    named = ["--model", model] if model else []
    command = [
        sys.executable,
        "-m",
        "munjang.cli.main",
        "serve",
        *named,
        "--port",
        str(port),
        "--access-log",
        "none",
        "--data",
        tempfile.mkdtemp(),
    ]
    process = subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL)
    return process, wait_for(process, port)


def start_plain(folder: str) -> tuple[subprocess.Popen[bytes], int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", PLAIN, folder, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return process, wait_for(process, port)


def wait_for(process: subprocess.Popen[bytes], port: int) -> int:
    import http.client

    atexit.register(process.kill)  # a run that fails leaves no server behind
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            connection.getresponse().read()
            connection.close()
            return port
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the server did not start")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(60)


def resident_megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def wrk_rate(port: int, texts: list[str], connections: int, seconds: float) -> float:
    """Return requests a second by wrk, which goes round the texts."""
    bodies = ",\n".join(json.dumps(json.dumps({"input": text})) for text in texts)
    script = f"""
local bodies = {{ {bodies} }}
local at = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function() at = at % #bodies + 1; return wrk.format(nil, "/v1/embeddings", nil, bodies[at]) end
done = function(summary) io.write(string.format("RATE %f %d\\n", summary.requests / summary.duration * 1e6, summary.errors.status)) end
"""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = [
            "wrk",
            "-t1",
            "--timeout",
            "30s",
            f"-c{connections}",
            f"-d{max(1, round(seconds))}s",
            "-s",
            file.name,
            f"http://127.0.0.1:{port}",
        ]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate, errors = next(line for line in out.splitlines() if line.startswith("RATE")).split()[1:]
    if int(errors):
        raise SystemExit(f"wrk saw {errors} errors")
    return float(rate)


async def ask(text: str, reader: Any, writer: Any) -> int:
    """Send one request on an open connection and return the status."""
    body = json.dumps({"input": text}).encode()
    writer.write(
        b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body
    )
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    await reader.readexactly(length)
    return int(head[9:12])


async def closed_load(port: int, texts: list[str], connections: int, seconds: float) -> list[tuple[float, int]]:
    """Let connections ask again and again; return (seconds, status) of each answer."""
    found: list[tuple[float, int]] = []
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        at = number
        while time.perf_counter() < end:
            start = time.perf_counter()
            status = await ask(texts[at % len(texts)], reader, writer)
            found.append((time.perf_counter() - start, status))
            at += connections
        writer.close()

    await asyncio.gather(*(client(number) for number in range(connections)))
    return found


async def open_load(port: int, texts: list[str], rate: float, seconds: float, most: int = 900) -> list[tuple[float, int]]:
    """Ask at a fixed rate, whatever the answers do; time counts from when a request was due, so waiting is not hidden."""
    found: list[tuple[float, int]] = []
    idle: list[tuple[Any, Any]] = []
    tasks: set[asyncio.Task[None]] = set()
    begin = time.perf_counter()

    async def one(number: int, due: float) -> None:
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
        status = await ask(texts[number % len(texts)], reader, writer)
        found.append((time.perf_counter() - due, status))
        idle.append((reader, writer))

    for number in range(int(rate * seconds)):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if len(tasks) < most:
            task = asyncio.create_task(one(number, max(due, time.perf_counter() - 0.001)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    for _, writer in idle:
        writer.close()
    return found


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def rate_of(port: int, texts: list[str], connections: int, seconds: float) -> float:
    if shutil.which("wrk"):
        return wrk_rate(port, texts, connections, seconds)
    return len(in_client(port, texts, "closed", connections, seconds)) / seconds


def in_client(port: int, texts: list[str], kind: str, amount: float, seconds: float) -> list[tuple[float, int]]:
    """Run a load in a process of its own, so that the generator does not share an interpreter with anything."""
    order = json.dumps({"port": port, "texts": texts, "kind": kind, "amount": amount, "seconds": seconds})
    done = subprocess.run([sys.executable, str(HERE), "--client"], input=order, capture_output=True, text=True, check=True)
    return [(float(took), int(status)) for took, status in json.loads(done.stdout)]


def be_client() -> None:
    order = json.loads(sys.stdin.read())
    load = closed_load if order["kind"] == "closed" else open_load
    amount = int(order["amount"]) if order["kind"] == "closed" else order["amount"]
    print(json.dumps(asyncio.run(load(order["port"], order["texts"], amount, order["seconds"]))))


def offline_rate(model: str | None, texts: list[str]) -> float:
    code = "import sys, json, time\nfrom munjang import SentenceEncoder\n"
    code += "order = json.load(sys.stdin); model = SentenceEncoder.load(order['model']); model.encode(order['texts'][:256])\n"
    code += "start = time.perf_counter(); model.encode(order['texts']); print(len(order['texts']) / (time.perf_counter() - start))"
    order = json.dumps({"model": model, "texts": texts})
    return float(subprocess.run([sys.executable, "-c", code], input=order, capture_output=True, text=True, check=True).stdout)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    texts = short_sentences(2_000)
    seconds, connections = options.seconds, options.connections
    from munjang.models.registry import resolve

    folder = str(resolve(options.model).path)
    process, port = start_ours(options.model)
    rate_of(port, texts, connections, min(seconds, 3))
    warm = resident_megabytes(process.pid)
    rounds = [(offline_rate(options.model, texts), rate_of(port, texts, connections, seconds)) for _ in range(options.rounds)]
    offline, served = (statistics.median(column) for column in zip(*rounds, strict=True))
    calm = [took for took, _ in in_client(port, texts, "open", 0.8 * served, seconds)]
    if options.drift_seconds:
        rate_of(port, texts, connections, options.drift_seconds)
    after = resident_megabytes(process.pid)
    stop(process)
    result: dict[str, Any] = {
        "cores": os.cpu_count(),
        "offline_texts_per_second": offline,
        "served_requests_per_second": served,
        "served_share_of_offline": statistics.median(ours / theirs for theirs, ours in rounds),
        "p50_ms_at_80_percent": 1000 * quantile(calm, 0.5),
        "p99_ms_at_80_percent": 1000 * quantile(calm, 0.99),
        "memory_drift": after / warm - 1,
    }
    result |= overload(options, texts, served)
    if not options.no_plain:
        plain, plain_port = start_plain(folder)
        rate_of(plain_port, texts, connections, min(seconds, 3))
        rate = rate_of(plain_port, texts, connections, seconds)
        result |= {"plain_requests_per_second": rate, "times_plain": served / rate if rate else float("inf")}
        stop(plain)
    return result


def overload(options: argparse.Namespace, texts: list[str], served: float) -> dict[str, float]:
    """Offer four times what can be served, with a queue short enough to fill."""
    process, port = start_ours(options.model, "--queue-tokens", "2048")
    rate_of(port, texts, options.connections, 1)
    before = resident_megabytes(process.pid)
    found = in_client(port, texts, "open", 4 * served, options.seconds)
    after = resident_megabytes(process.pid)
    good = [took for took, status in found if status == 200]
    refused = [took for took, status in found if status == 429]
    recovered = in_client(port, texts, "closed", 4, 1)
    stop(process)
    return {
        "overload_refused": len(refused),
        "overload_refusal_p99_ms": 1000 * quantile(refused, 0.99),
        "overload_goodput_share": len(good) / options.seconds / served,
        "overload_memory_growth": after / before - 1,
        "recovered_share_of_good": sum(status == 200 for _, status in recovered) / max(len(recovered), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--drift-seconds", type=float, default=600)
    parser.add_argument("--no-plain", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        be_client()
        return
    result = measure(options)
    for name, value in result.items():
        print(f"{name:32} {value:12.3f}" if isinstance(value, float) else f"{name:32} {value:>12}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
