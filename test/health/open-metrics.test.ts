import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseOpenMetrics } from './fake-open-metrics-parser.ts';
import { type MetricFamily, renderOpenMetrics, type SimpleFamily } from '../../shared/health/open-metrics.ts';
import { anyCharacter } from '../support/runs.ts';

const gauge = (more: Partial<SimpleFamily> = {}): SimpleFamily => ({
  type: 'gauge',
  name: 'thing',
  help: 'A thing',
  samples: [{ labels: {}, value: 1 }],
  ...more,
});
const valuesOf = (families: MetricFamily[]): string[] =>
  renderOpenMetrics(families)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));

describe('OpenMetrics text', () => {
  it('has type, unit and help before the samples of each family, and ends with # EOF', () => {
    const bytes = { name: 'used_bytes', unit: 'bytes', samples: [{ labels: { b: '2', a: '1' }, value: 2.5 }] };
    const total = gauge({ type: 'counter', name: 'runs' });
    expect(renderOpenMetrics([gauge(bytes), total])).toBe(
      [
        '# TYPE used_bytes gauge',
        '# UNIT used_bytes bytes',
        '# HELP used_bytes A thing',
        'used_bytes{a="1",b="2"} 2.5',
        '# TYPE runs counter',
        '# HELP runs A thing',
        'runs_total 1',
        '# EOF\n',
      ].join('\n'),
    );
    expect(renderOpenMetrics([])).toBe('# EOF\n');
  });

  it('has the value 1 for texts, and cumulative buckets for durations', () => {
    expect(valuesOf([{ type: 'info', name: 'build', help: '', samples: [{ labels: { version: '1' } }] }])).toEqual([
      'build_info{version="1"} 1',
    ]);
    const sample = { labels: { a: 'x' }, counts: [2, 0, 3], sum: 7.5 };
    const took = { type: 'histogram', name: 'took_seconds', unit: 'seconds', help: '', limits: [0.5, 1] } as const;
    expect(valuesOf([{ ...took, samples: [sample] }])).toEqual([
      'took_seconds_bucket{a="x",le="0.5"} 2',
      'took_seconds_bucket{a="x",le="1.0"} 2',
      'took_seconds_bucket{a="x",le="+Inf"} 5',
      'took_seconds_count{a="x"} 5',
      'took_seconds_sum{a="x"} 7.5',
    ]);
    expect(() => renderOpenMetrics([{ ...took, samples: [{ ...sample, labels: { le: '1' } }] }])).toThrow(/label le/);
  });

  it.each([
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, '+Inf'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
    [-0.25, '-0.25'],
    [1e21, '1e+21'],
    [1e-7, '1e-7'],
    [25e9, '25000000000'],
  ])('writes %d as %s', (value, text) =>
    expect(valuesOf([gauge({ samples: [{ labels: {}, value }] })])).toEqual([`thing ${text}`]),
  );

  it('escapes line feeds, quotation marks and backslashes, in labels and in help', () => {
    const text = 'a\n"b"\\n\\';
    const rendered = renderOpenMetrics([gauge({ help: text, samples: [{ labels: { x: text }, value: 1 }] })]);
    expect(rendered).toContain('thing{x="a\\n\\"b\\"\\\\n\\\\"} 1');
    expect(rendered).toContain('# HELP thing a\\n\\"b\\"\\\\n\\\\\n');
  });

  it('gives any label and any number back to a reader', () => {
    const label = fc.string({ unit: anyCharacter }).filter((text) => !text.includes('\r'));
    fc.assert(
      fc.property(label, label, fc.double(), (help, x, value) => {
        const [family] = parseOpenMetrics(
          renderOpenMetrics([gauge({ help, samples: [{ labels: { x }, value }] })]),
        ).values();
        expect(family?.help).toBe(help.toWellFormed());
        const labels = x === '' ? {} : { x: x.toWellFormed() };
        expect(family?.samples).toEqual([{ name: 'thing', labels, value: value + 0 }]);
      }),
    );
  });

  it('leaves out a label that is empty: to its reader that is the same as none', () =>
    expect(valuesOf([gauge({ samples: [{ labels: { a: '', b: '1', c: '' }, value: 2 }] })])).toEqual([
      'thing{b="1"} 2',
    ]));

  it.each<[string, MetricFamily[], RegExp]>([
    [
      'an empty label beside none',
      [gauge({ samples: [{}, { a: '' }].map((labels) => ({ labels, value: 1 })) })],
      /the metric thing has duplicate labels \{\}/,
    ],
    [
      'the same labels twice, in whatever order',
      [
        gauge({
          samples: [
            { labels: { a: '1', b: '2' }, value: 1 },
            { labels: { b: '2', a: '1' }, value: 2 },
          ],
        }),
      ],
      /the metric thing has duplicate labels \{a="1",b="2"\}/,
    ],
    [
      'labels that UTF-8 makes the same',
      [gauge({ samples: ['\uD800', '\uDFFF'].map((a) => ({ labels: { a }, value: 1 })) })],
      /duplicate labels/,
    ],
    ['the same family twice', [gauge(), gauge()], /duplicate metric thing$/],
    ['a counter beside a gauge of its name', [gauge(), gauge({ type: 'counter' })], /duplicate metric thing/],
    ['a gauge that ends like a counter', [gauge({ name: 'thing_total' })], /suffix of another type/],
    ['a name with a hyphen', [gauge({ name: 'a-b' })], /not a valid metric name/],
    ['a label with a hyphen', [gauge({ samples: [{ labels: { 'a-b': '' }, value: 1 }] })], /not a valid label name/],
    ['a reserved label', [gauge({ samples: [{ labels: { __a: '' }, value: 1 }] })], /not a valid label name/],
    ['a name without its unit', [gauge({ unit: 'bytes' })], /does not end with its unit/],
    ['a counter below 0', [gauge({ type: 'counter', samples: [{ labels: {}, value: -1 }] })], /is -1/],
    ['a counter that is no number', [gauge({ type: 'counter', samples: [{ labels: {}, value: NaN }] })], /is NaN/],
  ])('refuses %s', (_, families, why) => expect(() => renderOpenMetrics(families)).toThrow(why));
});

describe('the strict reader of the tests', () => {
  it.each([
    ['no end', '# TYPE a gauge\na 1\n'],
    ['something after the end', '# EOF\na 1\n'],
    ['no last line feed', '# EOF'],
    ['an empty line', '# TYPE a gauge\n\na 1\n# EOF\n'],
    ['a comment', '# a comment\n# EOF\n'],
    ['help before type', '# HELP a x\n# TYPE a gauge\na 1\n# EOF\n'],
    ['a type twice', '# TYPE a gauge\n# TYPE a gauge\na 1\n# EOF\n'],
    ['a counter without _total', '# TYPE a counter\na 1\n# EOF\n'],
    ['a sample of another family', '# TYPE a gauge\nb 1\n# EOF\n'],
    ['a family in two pieces', '# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\n# EOF\n'],
    ['a unit that is not in the name', '# TYPE a gauge\n# UNIT a bytes\na 1\n# EOF\n'],
    ['an empty label beside none', '# TYPE a gauge\na{b=""} 1\na 1\n# EOF\n'],
    ['labels twice', '# TYPE a gauge\na{b="1",c="2"} 1\na{c="2",b="1"} 1\n# EOF\n'],
    ['a label twice', '# TYPE a gauge\na{b="1",b="2"} 1\n# EOF\n'],
    ['a comma too many', '# TYPE a gauge\na{b="1",} 1\n# EOF\n'],
    ['a bare quotation mark', '# TYPE a gauge\n# HELP a "x"\na 1\n# EOF\n'],
    ['an unknown escape', '# TYPE a gauge\na{b="\\t"} 1\n# EOF\n'],
    ['two blanks', '# TYPE a gauge\na  1\n# EOF\n'],
    ['no number', '# TYPE a gauge\na one\n# EOF\n'],
    ['an info of 2', '# TYPE a info\na_info{b="c"} 2\n# EOF\n'],
    ['a histogram without +Inf', '# TYPE a histogram\na_bucket{le="1.0"} 1\na_count 1\na_sum 1\n# EOF\n'],
    ['buckets that fall', '# TYPE a histogram\na_bucket{le="1.0"} 2\na_bucket{le="+Inf"} 1\n# EOF\n'],
    ['a limit that is no float', '# TYPE a histogram\na_bucket{le="1"} 1\na_bucket{le="+Inf"} 1\n# EOF\n'],
    [
      'a gauge that a counter could have made',
      '# TYPE a counter\na_total 1\n# TYPE a_created gauge\na_created 1\n# EOF\n',
    ],
  ])('refuses %s', (_, text) => expect(() => parseOpenMetrics(text)).toThrow());
});
