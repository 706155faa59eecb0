// Answers everything except binds: searches, comparisons, extended operations, and refused writes.

import { nameKey as accountKey } from '../model/names.ts';
import type { Roster } from '../model/roster.ts';
import type { Identity } from './bind.ts';
import type { LdapLimits } from './limits.ts';
import { equality } from './matching.ts';
import type { AnsweredRequest, CompareRequest, Message, SearchRequest } from './message.ts';
import { RESULT, type Result } from './result.ts';
import { attributeKey } from './schema.ts';
import { MANAGE_DSA_IT, PAGED_RESULTS, search, type Send, WHO_AM_I } from './search.ts';
import { leafName, nameKey, placeOf, readName, type Tree, treeOf } from './tree.ts';
import { entryAt, type Viewer } from './walk.ts';

/**
 * How many requests of one account are worked on at once, over all its connections: one person's
 * searches do not take the database from the others.
 */
interface Account {
  running: number;
  waiting: Set<() => void>;
}

/**
 * Runs the work when its turn comes; rejects with the reason of the signal when that is aborted
 * before.
 */
export type InTurn = <T>(key: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

export function turns(concurrency: number): InTurn {
  const accounts = new Map<string, Account>();

  return async function inTurn(key, signal, work) {
    const account = accounts.get(key) ?? { running: 0, waiting: new Set() };
    accounts.set(key, account);
    while (account.running >= concurrency && !signal.aborted) await wokenOrAborted(account.waiting, signal);
    if (signal.aborted) {
      if (account.running < concurrency) wakeNext(account);
      signal.throwIfAborted();
    }
    account.running += 1;
    try {
      return await work();
    } finally {
      account.running -= 1;
      wakeNext(account);
      if (account.running === 0 && account.waiting.size === 0) accounts.delete(key);
    }
  };
}

function wakeNext({ waiting }: Account): void {
  const [next] = waiting;
  next?.();
}

async function wokenOrAborted(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const wake = (): void => {
      waiting.delete(wake);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
  });
}

export interface OperationDeps {
  roster: Roster;
  trees: readonly Tree[];
  searchAccount: string;
  limits: LdapLimits;
}

export type Operate = (
  message: Message<AnsweredRequest>,
  identity: Identity | undefined,
  send: Send,
  signal: AbortSignal,
) => Promise<Result>;

/**
 * The answer to a request whose critical control is not known; undefined when there is none such.
 */
export function refusedControl({ request, controls }: Message): Result | undefined {
  const known = request.kind === 'search' ? [MANAGE_DSA_IT, PAGED_RESULTS] : [MANAGE_DSA_IT];
  const unknown = controls.some(({ oid, critical }) => critical && !known.includes(oid));
  return unknown ? { code: RESULT.unavailableCriticalExtension, text: 'critical control not supported' } : undefined;
}

export function createOperations(deps: OperationDeps): Operate {
  const inTurn = turns(deps.limits.requestsOfAccount);
  const isSearchAccount = ({ username }: Identity): boolean => accountKey(username) === accountKey(deps.searchAccount);

  /**
   * Read anew for every request: who was deactivated, deleted or renamed since the bind sees
   * nothing any more.
   */
  async function viewerOf(identity: Identity | undefined): Promise<Viewer | undefined> {
    if (identity === undefined) return undefined;
    const person = await deps.roster.person(identity.username);
    if (person === undefined || person.pk !== identity.pk || !person.isActive) return undefined;
    return { tree: identity.tree, person, everything: isSearchAccount(identity) };
  }

  async function compare(request: CompareRequest, identity: Identity | undefined): Promise<Result> {
    const name = readName(request.name);
    if (name === undefined) return { code: RESULT.invalidDNSyntax };
    const viewer = await viewerOf(identity);
    if (viewer === undefined) return { code: RESULT.insufficientAccessRights, text: 'sign in first' };
    const tree = treeOf(deps.trees, name);
    if (tree !== undefined && tree !== viewer.tree) return { code: RESULT.insufficientAccessRights };
    const place = tree && placeOf(tree, name);
    const entry = place && (await entryAt(deps.roster, viewer, place));
    if (tree === undefined || entry === undefined) return { code: RESULT.noSuchObject };
    const { attribute, value } = request;
    if (value === undefined || !entry.attributes.has(attributeKey(attribute))) return { code: RESULT.noSuchAttribute };
    const holds = equality(attribute, value, (text) => nameKey(tree, text))(entry);
    return { code: holds === true ? RESULT.compareTrue : RESULT.compareFalse };
  }

  function whoAmI(identity: Identity | undefined): Result {
    const dn = identity && leafName(identity.tree, 'users', identity.username);
    return { code: RESULT.success, value: dn === undefined ? '' : `dn:${dn}` };
  }

  return async function operate(message, identity, send, signal) {
    const run = async (): Promise<Result> => answer(message, identity, send, signal);
    // The service account asks for many people at once.
    return identity === undefined || isSearchAccount(identity)
      ? run()
      : inTurn(accountKey(identity.username), signal, run);
  };

  async function answer(...[message, identity, send, signal]: Parameters<Operate>): Promise<Result> {
    const { request } = message;
    switch (request.kind) {
      case 'settled':
        return request.result;
      case 'extended':
        if (request.oid === WHO_AM_I) return whoAmI(identity);
        return { code: RESULT.protocolError, text: 'extended operation not supported' };
      case 'compare':
        return compare(request, identity);
      case 'search':
      default: {
        const readViewer = async (): Promise<Viewer | undefined> => viewerOf(identity);
        return search(deps, message as Message<SearchRequest>, readViewer, send, signal);
      }
    }
  }
}
