// Every object of the chart against the published schemas.

import { describe, expect, it } from 'vitest';
import { CASES, noSchemas, problemsOf, render } from './chart.ts';

describe.skipIf(noSchemas)(noSchemas ? 'helm or the schemas are not installed: not checked' : 'the schemas', () => {
  it.each(CASES)('take every object of %s', (name) => expect(render(name).flatMap(problemsOf)).toEqual([]));

  it('refuse an unknown member, a wrong type and an unknown version', () => {
    const [cluster] = render('one-machine').filter(({ kind }) => kind === 'Cluster');
    const [set] = render('one-machine').filter(({ kind }) => kind === 'StatefulSet');
    if (cluster === undefined || set === undefined) throw new Error('The chart has neither.');
    expect(problemsOf({ ...cluster, spec: { ...cluster.spec, replicas: 2 } })).toHaveLength(1);
    expect(problemsOf({ ...set, spec: { ...set.spec, replicas: 'two' } })).toHaveLength(1);
    expect(problemsOf({ ...set, spec: { ...set.spec, nodes: 2 } })).toHaveLength(1);
    expect(() => problemsOf({ ...cluster, apiVersion: 'postgresql.cnpg.io/v2' })).toThrow('serves no Cluster');
  });
});
