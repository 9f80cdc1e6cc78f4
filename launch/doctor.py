"""Look at this machine: versions, compiler, devices, memory, disk, ports, stale locks, W&B, endpoints.

One table; each problem with its remedy. Exits 1 if there is a problem. --fix removes compiler locks that a killed
run left behind (only those that no running process holds).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from launch.cli import parser, run

if TYPE_CHECKING:
    from writer_rl.run.doctor import Check

SIGNS = {"ok": "ok", "note": "note", "problem": "PROBLEM"}


def show(checks: list[Check]) -> None:
    """The table, and below it the remedies."""
    width = min(40, max(len(check.name) for check in checks))
    for check in checks:
        remedy = f"  -> {check.remedy}" if check.remedy else ""
        print(f"{check.name:<{width}}  {SIGNS[check.state]:<8} {check.finding}{remedy}")


def main(argv: list[str]) -> int:
    """Print the table; 1 if something is a problem."""
    options = parser(__doc__)
    options.add_argument("--output_dir", default="runs", help="where runs will be written (runs)")
    options.add_argument(
        "--endpoint",
        action="append",
        default=[],
        metavar="URL",
        help="an OpenAI-compatible endpoint to try; repeatable",
    )
    options.add_argument("--config", help="a GRPO run that is to be made: does its disk suffice?")
    options.add_argument("--fix", action="store_true", help="remove stale compiler locks")
    chosen = options.parse_args(argv)
    from writer_rl.run.doctor import all_checks, stale_locks

    if chosen.fix:
        for lock in stale_locks():
            lock.unlink(missing_ok=True)
            print(f"removed {lock}")
    output, needed = chosen.output_dir, 0
    if chosen.config:
        from writer_rl.config import load_config, resolve
        from writer_rl.run.run_plan import disk_needed

        config = load_config("grpo", chosen.config, [])
        output, needed = resolve(config.output_dir), disk_needed(config, config.trainer.steps)
    checks = all_checks(output, chosen.endpoint, disk_needed=needed)
    show(checks)
    problems = sum(check.state == "problem" for check in checks)
    print(f"{problems} problem{'s' * (problems != 1)}" if problems else "no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    run(main)
