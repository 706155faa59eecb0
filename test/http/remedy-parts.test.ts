import { describe, expect, it } from 'vitest';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import { remedyParts } from '../../shared/http/text.ts';

const commands = (remedy: string): string[] =>
  remedyParts(remedy).flatMap(({ kind, text }) => (kind === 'command' ? [text] : []));

describe('the commands in a remedy', () => {
  it.each([
    ['Start it again with docker compose up -d NAME.', ['docker compose up -d NAME']],
    [
      'See it: docker compose ps --all, then docker compose logs --tail 100 NAME.',
      ['docker compose ps --all', 'docker compose logs --tail 100 NAME'],
    ],
    [
      'Compare (dig +short NAME A; dig +short NAME AAAA) with the others.',
      ['dig +short NAME A', 'dig +short NAME AAAA'],
    ],
    [
      'Look: sudo du -xh --max-depth=3 MOUNT | sort -h | tail -20 (for inodes: du -x --inodes).',
      ['sudo du -xh --max-depth=3 MOUNT | sort -h | tail -20', 'du -x --inodes'],
    ],
    [
      'Send: curl -X POST -H "content-type: application/json" -d \'{"channel":"email"}\' http://127.0.0.1:8080/api/ops/alerts/test',
      [
        'curl -X POST -H "content-type: application/json" -d \'{"channel":"email"}\' http://127.0.0.1:8080/api/ops/alerts/test',
      ],
    ],
    [
      "Look: SELECT pid FROM pg_stat_activity WHERE xact_start < now() - interval '1 hour'; and end one with SELECT pg_terminate_backend(PID);",
      [
        "SELECT pid FROM pg_stat_activity WHERE xact_start < now() - interval '1 hour';",
        'SELECT pg_terminate_backend(PID);',
      ],
    ],
    ['Stop: ./scripts/stop.sh --data DIR, then start again.', ['./scripts/stop.sh --data DIR']],
    [
      'As a superuser: ALTER SYSTEM RESET fsync; SELECT pg_reload_conf();',
      ['ALTER SYSTEM RESET fsync; SELECT pg_reload_conf();'],
    ],
    ['The owner may run ALTER DATABASE, ALTER TABLE and VACUUM; ALTER SYSTEM needs a superuser.', []],
    ["Whoever has one enrolls anew; nobody's work stops.", []],
  ])('%s', (remedy, wanted) => {
    expect(commands(remedy)).toEqual(wanted);
  });

  it('leave nothing out and add nothing, in every remedy that there is', () => {
    const all = HEALTH_MODULES.flatMap(({ remedy }) => remedy);
    expect(
      all.map((remedy) =>
        remedyParts(remedy)
          .map(({ text }) => text)
          .join(''),
      ),
    ).toEqual(all);
    expect(all.flatMap(commands).length).toBeGreaterThan(30);
  });

  it('never end within brackets or quotes', () => {
    for (const command of HEALTH_MODULES.flatMap(({ remedy }) => remedy).flatMap(commands)) {
      const count = (sign: string): number => command.split(sign).length - 1;
      expect([command, count('(') - count(')'), count('"') % 2, count("'") % 2]).toEqual([command, 0, 0, 0]);
    }
  });

  it('are looked for in the longest and oddest text too', () => {
    const odd = `docker ${"a' ".repeat(5000)} SELECT ${'x;y'.repeat(5000)} sudo ${'"'.repeat(5001)}`;
    expect(
      remedyParts(odd)
        .map(({ text }) => text)
        .join(''),
    ).toBe(odd);
  });
});
