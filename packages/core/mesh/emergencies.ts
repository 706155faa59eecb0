// Lists the emergencies of all nodes, and removes them: each node repeats those of its own clients.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { z } from 'zod';
import { type Emergencies, emergencySchema, type ShownEmergency } from '../services/stream-services.ts';
import type { Bus } from './bus.ts';
import { subjects } from './subjects.ts';

/** `id`: of the question; `node`: which asks. */
const questionSchema = z.object({ id: z.string(), node: z.string(), remove: z.string().optional() });
/** One message for each emergency, then one that says so. */
const answerSchema = z.object({
  id: z.string(),
  node: z.string(),
  emergency: emergencySchema.optional(),
  end: z.object({ isRemoved: z.boolean() }).optional(),
});

export interface EmergenciesOptions {
  node: string;
  bus: Pick<Bus, 'publish' | 'subscribe'>;
  /** Names of the other nodes that are there. */
  others: () => readonly string[];
  log: Log;
}

interface Question {
  waitsFor: Set<string>;
  found: ShownEmergency[];
  isRemoved: boolean;
  answered: () => void;
}

const ANSWER_WITHIN_MS = 1_000;

export class ClusterEmergencies implements Emergencies {
  readonly #options: EmergenciesOptions;
  readonly #own: Emergencies;
  readonly #questions = new Map<string, Question>();

  /** `own`: those of this node. */
  constructor(options: EmergenciesOptions, own: Emergencies) {
    this.#options = options;
    this.#own = own;
    const { bus, node } = options;
    bus.subscribe(subjects.emergencies, (message) => this.#guarded(message, () => this.#answer(message)));
    bus.subscribe(subjects.emergenciesOf(node), (message) => this.#guarded(message, () => this.#takeAnswer(message)));
  }

  /** Without those of nodes that do not answer, which is logged. */
  async list(): Promise<ShownEmergency[]> {
    const [own, { found, waitsFor }] = await Promise.all([this.#own.list(), this.#ask({})]);
    if (waitsFor.size > 0) this.#options.log.warn('mesh.emergencies_missing', { nodes: [...waitsFor] });
    return [...own, ...found];
  }

  /** Rejects with an AppError `unavailable` when it may be on a node that does not answer. */
  async remove(uid: string): Promise<boolean> {
    const [isOwn, { isRemoved, waitsFor }] = await Promise.all([this.#own.remove(uid), this.#ask({ remove: uid })]);
    if (isOwn || isRemoved || waitsFor.size === 0) return isOwn || isRemoved;
    throw new AppError('unavailable', `No answer from ${[...waitsFor].join(', ')}. Try again.`);
  }

  async #ask(what: { remove?: string }): Promise<Question> {
    const { node, bus, others } = this.#options;
    const id = crypto.randomUUID();
    const { promise, resolve } = Promise.withResolvers<void>();
    const question: Question = { waitsFor: new Set(others()), found: [], isRemoved: false, answered: resolve };
    if (question.waitsFor.size === 0) return question;
    this.#questions.set(id, question);
    const late = setTimeout(resolve, ANSWER_WITHIN_MS);
    bus.publish(subjects.emergencies, Buffer.from(JSON.stringify({ id, node, ...what })));
    await promise;
    clearTimeout(late);
    this.#questions.delete(id);
    return question;
  }

  async #answer(message: Buffer): Promise<void> {
    const { id, node: to, remove } = questionSchema.parse(JSON.parse(message.toString('utf8')));
    const { bus, node } = this.#options;
    const say = (answer: object): void =>
      bus.publish(subjects.emergenciesOf(to), Buffer.from(JSON.stringify({ id, node, ...answer })));
    const isRemoved = remove !== undefined && (await this.#own.remove(remove));
    if (remove === undefined) for (const emergency of await this.#own.list()) say({ emergency });
    say({ end: { isRemoved } });
  }

  async #takeAnswer(message: Buffer): Promise<void> {
    const { id, node, emergency, end } = answerSchema.parse(JSON.parse(message.toString('utf8')));
    const question = this.#questions.get(id);
    if (question?.waitsFor.has(node) !== true) return;
    if (emergency !== undefined) question.found.push(emergency);
    if (end === undefined) return;
    question.isRemoved ||= end.isRemoved;
    question.waitsFor.delete(node);
    if (question.waitsFor.size === 0) question.answered();
  }

  /** Rule `unreadableMessage`: a message that is none of ours is logged and dropped. */
  #guarded(message: Buffer, work: () => Promise<void>): void {
    work().catch((error: unknown) =>
      this.#options.log.error('mesh.message_unreadable', { error: messageOf(error), bytes: message.length }),
    );
  }
}
