import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { healthFigures } from '../../shared/health/figures.ts';
import { renderOpenMetrics } from '../../shared/health/open-metrics.ts';
import { labelKey, parseOpenMetrics } from './fake-open-metrics-parser.ts';

const lines = (data: unknown, module = 'disk'): string[] =>
  renderOpenMetrics(healthFigures([{ module, data }]))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));

describe('figures of health', () => {
  it('are numbers and yes or no; texts and null give nothing', () =>
    expect(lines({ free: 3, full: false, ready: true, error: 'no', missing: null })).toEqual([
      'holdfast_disk_free 3',
      'holdfast_disk_full 0',
      'holdfast_disk_ready 1',
    ]));

  it.each([
    [{ used_pct: 41.5 }, 'used_ratio 0.415'],
    [{ used_pct: 17.3 }, 'used_ratio 0.173'],
    [{ days_left: 12 }, 'left_seconds 1036800'],
    [{ days_until_full: 0.5 }, 'until_full_seconds 43200'],
    [{ latency_ms: 250 }, 'latency_seconds 0.25'],
    [{ ttl_minutes: 15 }, 'ttl_seconds 900'],
    [{ free_bytes: 7 }, 'free_bytes 7'],
    [{ offset_seconds: -0.5 }, 'offset_seconds -0.5'],
    [{ bytes_per_row: 5 }, 'bytes_per_row 5'],
    [{ row_count: 4, rows: [] }, 'rows 4'],
    [{ match_count: 4, matches: [] }, 'matches 4'],
    [{ newer_count: 4 }, 'newer 4'],
    [{ '2xx': 4 }, 'n2xx 4'],
    [{ rows_total: 4 }, 'rows_total_value 4'],
    [{ 'Wal Level-2': 4 }, 'wal_level_2 4'],
  ])('are in base units, named so: %j', (data, text) => expect(lines(data)).toEqual([`holdfast_disk_${text}`]));

  it('of lists have the labels that tell the entries apart, never a message', () =>
    expect(
      lines({
        mounts: [
          { mount: '/', error: 'slow', free_bytes: 1 },
          { mount: '/data', error: null, free_bytes: 2 },
        ],
        policies: [{ schema: 'public', table: 'cot_router', kept: 1 }],
      }),
    ).toEqual([
      'holdfast_disk_mount_free_bytes{mount="/"} 1',
      'holdfast_disk_mount_free_bytes{mount="/data"} 2',
      'holdfast_disk_policy_kept{schema="public",table="cot_router"} 1',
    ]));

  it('of several certificates of one user are told apart by their files, wherever they stand', () =>
    expect(
      lines({
        issued: [
          { file: 'ada~phone.p12', username: 'ada', days_left: 1 },
          { file: 'ada~laptop.p12', username: 'ada', days_left: 2 },
        ],
      }),
    ).toEqual([
      'holdfast_disk_issued_left_seconds{file="ada~phone.p12",username="ada"} 86400',
      'holdfast_disk_issued_left_seconds{file="ada~laptop.p12",username="ada"} 172800',
    ]));

  it('of lists whose entries have no name, or the same, are told apart by their place', () =>
    expect(
      lines({
        checks: [{ n: 1 }, { n: 2 }],
        names: [
          { name: 'a', n: 1 },
          { name: 'a', n: 2 },
          { name: 'b', n: 3 },
        ],
      }),
    ).toEqual([
      'holdfast_disk_check_n{entry="0"} 1',
      'holdfast_disk_check_n{entry="1"} 2',
      'holdfast_disk_name_n{entry="0",name="a"} 1',
      'holdfast_disk_name_n{entry="1",name="a"} 2',
      'holdfast_disk_name_n{name="b"} 3',
    ]));

  it('of lists whose entries have an empty name are told apart by their place, not by an empty label', () =>
    expect(
      lines({
        mounts: [{ mount: '', n: 1 }, { mount: '/', n: 2 }, { n: 3 }, { mount: '', host: 'a', n: 4 }],
      }),
    ).toEqual([
      'holdfast_disk_mount_n{entry="0"} 1',
      'holdfast_disk_mount_n{mount="/"} 2',
      'holdfast_disk_mount_n{entry="2"} 3',
      'holdfast_disk_mount_n{host="a"} 4',
    ]));

  it('of lists in lists have the labels of both', () =>
    expect(lines({ hosts: [{ name: 'a', ports: [{ name: 'x', up: true }] }] })).toEqual([
      'holdfast_disk_host_port_up{name="a",port_name="x"} 1',
    ]));

  it('of plain numbers and of objects are there too', () =>
    expect(lines({ latencies: [4, 5], settings: { scale_factor: 0.05, mode: 'on' } })).toEqual([
      'holdfast_disk_latencies{entry="0"} 4',
      'holdfast_disk_latencies{entry="1"} 5',
      'holdfast_disk_settings_scale_factor 0.05',
    ]));

  it('that would have the same name and labels say where they come from', () =>
    expect(lines({ used_pct: 50, used_ratio: 0.25 })).toEqual([
      'holdfast_disk_used_ratio 0.5',
      'holdfast_disk_used_ratio{member="disk.used_ratio"} 0.25',
    ]));

  it('are valid and complete for any data of any module', () => {
    const key = fc.constantFrom('name', 'mount', 'days_left', 'n', 'used_pct', 'used_ratio', 'rows', 'rows_count', '§');
    const { data } = fc.letrec((tie) => ({
      data: fc.dictionary(key, tie('value'), { maxKeys: 5 }),
      value: fc.oneof(
        { maxDepth: 3 },
        fc.integer(),
        fc.boolean(),
        fc.constantFrom('a', 'b', ''),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 3 }),
        tie('data'),
      ),
    }));
    fc.assert(
      fc.property(data, data, (disk, diskName) => {
        const modules = [
          { module: 'disk', data: disk },
          { module: 'disk_name', data: diskName },
        ];
        const families = [...parseOpenMetrics(renderOpenMetrics(healthFigures(modules))).values()];
        const samples = families.flatMap((family) => family.samples);
        expect(samples).toHaveLength(countOf(disk) + countOf(diskName));
        expect(new Set(samples.map((each) => each.name + labelKey(each.labels))).size).toBe(samples.length);
      }),
    );
  });
});

function countOf(value: unknown): number {
  if (typeof value === 'number' || typeof value === 'boolean') return 1;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, each) => sum + countOf(each), 0);
}
