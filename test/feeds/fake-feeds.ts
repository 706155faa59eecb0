// Feeds in memory, with the report of a flow engine that the test writes.

import type { Feed, FeedReport, Feeds } from '../../shared/feeds/port.ts';

export interface FakeFeeds extends Feeds {
  stored: Feed[];
  reported: FeedReport | undefined;
}

export function fakeFeeds(): FakeFeeds {
  return {
    stored: [],
    reported: undefined,
    async list() {
      return structuredClone(this.stored).toSorted((a, b) => a.name.localeCompare(b.name));
    },
    async write(feeds) {
      this.stored = structuredClone([...feeds]);
    },
    async report() {
      return structuredClone(this.reported);
    },
  };
}
