// Files of the core in memory, and a spool in a directory of its own.

import { join } from 'node:path';
import { Spool } from '../files/spool.ts';
import type { Resource } from '../model/mission.ts';
import type {
  FileParts,
  NewResource,
  ResourceOrder,
  ResourceQuery,
  ResourceStore,
  ResourceWriter,
} from '../store/resources.ts';

interface Row extends Resource {
  places: Set<number>;
  data: Buffer;
}

export interface MemoryResources {
  resources: ResourceStore;
  resourceWriter: ResourceWriter;
  rows: Row[];
}

export const MAX_UPLOAD_BYTES = 6_000_000;

export function testSpool(dataDir: string, freeBytes = async (): Promise<number> => 1e12): Spool {
  const directory = join(dataDir, 'uploads');
  return new Spool({ directory, maxBytes: MAX_UPLOAD_BYTES, steadyMs: () => performance.now(), freeBytes });
}

/** `names` says what the groups at the places are called. */
export function memoryResources(names: () => Promise<ReadonlyMap<number, string>>): MemoryResources {
  const rows: Row[] = [];
  let lastId = 0;

  function chosen({ groups, ...wanted }: ResourceQuery, submitter?: string): Row[] {
    const { keywords = [], nameContains, since, until } = wanted;
    return rows.filter(
      (row) =>
        (groups === 'all' || groups.some((place) => row.places.has(place))) &&
        (['id', 'hash', 'uid', 'tool'] as const).every(
          (key) => wanted[key] === undefined || wanted[key] === row[key],
        ) &&
        keywords.every((each) => row.keywords.includes(each)) &&
        (nameContains === undefined || row.name.toLowerCase().includes(nameContains.toLowerCase())) &&
        wanted.mission === undefined &&
        (since === undefined || row.submissionTime >= since) &&
        (until === undefined || row.submissionTime <= until) &&
        (submitter === undefined || row.submitter === submitter),
    );
  }

  function shown({ places: _places, data: _data, ...row }: Row): Resource {
    return structuredClone(row);
  }

  async function add(file: NewResource, source: FileParts): Promise<Resource> {
    const data: Buffer[] = [];
    for await (const part of source.parts(1000)) data.push(Buffer.from(part));
    const { places, location: _location, altitude: _altitude, ...known } = file;
    const row = { ...known, id: ++lastId, places: new Set(places), data: Buffer.concat(data) };
    rows.push(row);
    return shown(row);
  }

  const keys: Record<ResourceOrder, (row: Row) => string | number> = {
    name: ({ name }) => name,
    user: ({ submitter }) => submitter,
    size: ({ sizeBytes }) => sizeBytes,
    time: ({ submissionTime }) => submissionTime.getTime(),
    tool: ({ tool }) => tool,
    expiration: ({ expiration }) => expiration,
  };

  function sorted(query: ResourceQuery, order: ResourceOrder, ascending: boolean): Row[] {
    const key = keys[order];
    const compare = (a: Row, b: Row): number => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.id - b.id);
    return chosen(query).toSorted((a, b) => (ascending ? compare(a, b) : compare(b, a)));
  }

  return {
    rows,
    resourceWriter: {
      add,
      async join(file, source) {
        const row = rows.findLast(
          ({ hash, places }) => hash === file.hash && file.places.some((place) => places.has(place)),
        );
        if (row === undefined) return add(file, source);
        for (const place of file.places) row.places.add(place);
        row.keywords = [...new Set([...row.keywords, ...file.keywords])].toSorted();
        return shown(row);
      },
    },
    resources: {
      find: async (query) => chosen(query).map(shown).at(-1),
      search: async (query, most) => sorted(query, 'time', false).slice(0, most).map(shown),
      async list(query, { order, ascending, limit, offset }) {
        const called = await names();
        const { groups } = query;
        const page = sorted(query, order, ascending).slice(offset, offset + limit);
        return page.map((row) => ({
          ...shown(row),
          groups: [...row.places]
            .filter((place) => groups === 'all' || groups.includes(place))
            .flatMap((place) => called.get(place) ?? [])
            .toSorted(),
        }));
      },
      count: async (query) => chosen(query).length,
      async change(query, change, submitter) {
        const { keywords, ...rest } = change;
        const found = chosen(query, submitter);
        for (const row of found) Object.assign(row, rest, keywords === undefined ? {} : { keywords: [...keywords] });
        return found.length;
      },
      async remove(query, submitter) {
        const gone = chosen(query, submitter);
        for (const row of gone) rows.splice(rows.indexOf(row), 1);
        return gone.length;
      },
      async bytes(id, from, length) {
        return rows.find((row) => row.id === id)?.data.subarray(from, from + length);
      },
    },
  };
}
