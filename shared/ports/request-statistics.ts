// How many HTTP requests were answered, how, and in what time.

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
  /** How many took at most each limit and longer than the one before; one more for what took longer than all. */
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
