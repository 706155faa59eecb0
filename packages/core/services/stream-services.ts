// Serves what administrators set on the stream: /Marti/api/injectors and /Marti/api/repeater.

import { z } from 'zod';
import { CoreFault, emptyAnswer, isOfForeignPage, PageFault, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, checked, invalid, readJson } from '../http/route.ts';
import { label } from '../missions/request.ts';
import type { InjectorRow, InjectorStore } from '../store/services.ts';
import { injectionFault, type Injectors } from '../stream/injectors.ts';
import { PERIOD_MS, type Repeater } from '../stream/repeater.ts';
import { serverEventXml } from '../stream/wire/xml-write-event.ts';

/** An emergency that is repeated, as the API shows it. */
export const emergencySchema = z.object({
  uid: z.string(),
  repeatType: z.string(),
  cotType: z.string(),
  dateTimeActivated: z.string(),
  xml: z.string(),
  callsign: z.string(),
});
export type ShownEmergency = z.infer<typeof emergencySchema>;

export interface Emergencies {
  list(): Promise<ShownEmergency[]>;
  /** Tells everybody who heard it that it is over. False when there is none. */
  remove(uid: string): Promise<boolean>;
}

/** Those of the clients of this node. */
export function emergenciesOf(repeater: Pick<Repeater, 'list' | 'remove'>, now: () => Date): Emergencies {
  return {
    list: async () =>
      repeater.list().map(({ uid: of, repeatType, cotType, activatedAt, callsign, event }) => ({
        uid: of,
        repeatType,
        cotType,
        dateTimeActivated: activatedAt.toISOString(),
        xml: serverEventXml(event, now()).toString(),
        callsign,
      })),
    remove: async (of) => repeater.remove(of),
  };
}

export interface StreamServicesOptions {
  nodeId: string;
  injectorStore: InjectorStore;
  injectors: Pick<Injectors, 'replace'>;
  emergencies: Emergencies;
  repeater: Pick<Repeater, 'periodMs'>;
}

const INJECTORS = '/Marti/api/injectors/cot/uid';
const INJECTOR_TYPE = 'InjectorConfig';
const MAX_INJECTORS = 1_000;
const uid = label(255).min(1);
const InjectorBody = z.object({ uid, toInject: z.string().min(1) });
const Period = z.number().int().min(PERIOD_MS.least).max(PERIOD_MS.most);

export function streamServiceRoutes(options: StreamServicesOptions): AdminRoute[] {
  const { nodeId, injectorStore, injectors, emergencies, repeater } = options;
  const answer = (rows: readonly InjectorRow[]): Response => wrapped(INJECTOR_TYPE, rows, nodeId);
  const reload = async (): Promise<void> => injectors.replace(await injectorStore.list());

  async function addInjector(c: AdminContext): Promise<Response> {
    const injector = await readJson(c, InjectorBody);
    const fault = injectionFault(injector.toInject);
    if (fault !== undefined) throw invalid(`toInject ${fault}`);
    if ((await injectorStore.list()).length >= MAX_INJECTORS)
      throw new CoreFault('conflict', `There can be at most ${MAX_INJECTORS} injectors. Delete old ones.`);
    await injectorStore.add(injector);
    await reload();
    return answer([injector]);
  }

  async function removeInjector(c: AdminContext): Promise<Response> {
    const injector = { uid: checked(uid, c.req.query('uid') ?? ''), toInject: c.req.query('toInject') ?? '' };
    if (!(await injectorStore.remove(injector)))
      throw new CoreFault('not found', `No injector for ${injector.uid} with that text.`);
    await reload();
    return answer([injector]);
  }

  async function injectorsOf(c: AdminContext): Promise<Response> {
    const wanted = checked(uid, c.req.param('uid') ?? '');
    return answer((await injectorStore.list()).filter((each) => each.uid === wanted));
  }

  async function setPeriod(c: AdminContext): Promise<Response> {
    repeater.periodMs = await readJson(c, Period);
    return emptyAnswer();
  }

  /** A release changes this by GET: no page of another site may cause it. */
  async function removeRepeated(c: AdminContext): Promise<Response> {
    if (isOfForeignPage(c.req.raw, c.env.connection))
      throw new PageFault(403, 'This request came from a page of another site.');
    return wrapped('java.lang.String', await emergencies.remove(checked(uid, c.req.param('uid') ?? '')), nodeId);
  }

  return [
    {
      path: INJECTORS,
      handlers: { GET: async () => answer(await injectorStore.list()), POST: addInjector, DELETE: removeInjector },
    },
    { path: `${INJECTORS}/:uid`, handlers: { GET: injectorsOf } },
    {
      path: '/Marti/api/repeater/list',
      handlers: { GET: async () => wrapped('java.lang.String', await emergencies.list(), nodeId) },
    },
    {
      path: '/Marti/api/repeater/period',
      handlers: { GET: () => wrapped('java.lang.Integer', repeater.periodMs, nodeId), POST: setPeriod },
    },
    { path: '/Marti/api/repeater/remove/:uid', handlers: { GET: removeRepeated, DELETE: removeRepeated } },
  ];
}
