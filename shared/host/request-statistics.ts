// Counts HTTP requests by method, status and duration.

type Maybe<T> = T | Promise<T>;

export interface AnsweredRequests {
  /** One of the common methods, or `other`. */
  method: string;
  /** `200`; `other` when it is no HTTP status. */
  status: string;
  count: number;
}

export interface RequestFigures {
  answered: AnsweredRequests[];
  /** Upper limits of the duration, in seconds. */
  limits: number[];
  /**
   * Requests per bucket: at most this limit and longer than the one before. One more bucket counts
   * those longer than all limits.
   */
  counts: number[];
  sumSeconds: number;
}

export interface RequestStatistics {
  figures(): Maybe<RequestFigures>;
}

/** Where requests are counted. */
export interface RequestCounter {
  answered(method: string, status: number, seconds: number): void;
}

/** Counts requests in memory. Every request passes through here, so counting allocates nothing. */
export interface MemoryRequestStatistics extends RequestStatistics, RequestCounter {
  figures(): RequestFigures;
}

/** The methods that have a counter of their own; index 0 counts all others. */
const METHODS = ['other', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const STATUSES = 600;
/** Seconds. */
const LIMITS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];

export function memoryRequestStatistics(): MemoryRequestStatistics {
  const places = new Map(METHODS.map((method, index) => [method, index * STATUSES]));
  const answered = new Float64Array(METHODS.length * STATUSES);
  const took = new Float64Array(LIMITS.length + 1);
  const sum = new Float64Array(1);

  return {
    answered(method, status, seconds) {
      const place = (places.get(method) ?? 0) + (status >= 100 && status < STATUSES ? status : 0);
      answered[place] = (answered[place] ?? 0) + 1;
      let bucket = 0;
      while (bucket < LIMITS.length && seconds > (LIMITS[bucket] ?? 0)) bucket++;
      took[bucket] = (took[bucket] ?? 0) + 1;
      sum[0] = (sum[0] ?? 0) + seconds;
    },
    figures: () => ({
      answered: [...answered].flatMap((count, place) => (count === 0 ? [] : [answeredAt(place, count)])),
      limits: LIMITS,
      counts: [...took],
      sumSeconds: sum[0] ?? 0,
    }),
  };
}

function answeredAt(place: number, count: number): AnsweredRequests {
  const status = place % STATUSES;
  return {
    method: METHODS[Math.floor(place / STATUSES)] ?? 'other',
    status: status === 0 ? 'other' : String(status),
    count,
  };
}
