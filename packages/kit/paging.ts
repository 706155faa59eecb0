// Free JSON values, and pages of long lists.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Free data of an account, kept by the provider. The LDAP directory publishes it: never put a secret here. */
export type Attributes = Record<string, Json>;

export interface Page<T> {
  results: T[];
  /** Of the filtered set. */
  count: number;
}

export interface Paging {
  /** From 1. A page beyond the last is empty. */
  page: number;
  /** 1 to 200. */
  pageSize: number;
}
