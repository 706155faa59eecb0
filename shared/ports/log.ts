// Where events go: one JSON line each, with a dotted event name (`http.request`, `process.died`).

export type Fields = Readonly<Record<string, unknown>>;

export interface Log {
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}
