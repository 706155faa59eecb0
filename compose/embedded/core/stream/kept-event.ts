// An event that outlives its turn: one copy of its bytes as they were delivered. The newest position report of a client is
// kept so for those who come later, and an event for a mission until its subscribers are known.

import type { Outgoing } from './outboxes.ts';
import type { Delivery, Stamp } from './parts.ts';

const ROOM_STEP = 256;
const NOTHING: Buffer = Buffer.alloc(0);

/** An event that is read again, as it was stamped; undefined when that cannot be. */
export type Redeliver = (xml: Buffer, stamp: Stamp) => Delivery | undefined;

export class KeptEvent implements Outgoing {
  private readonly redeliver: Redeliver;
  private readonly mostBytes: number;
  private room = NOTHING;
  /** What of the room counts; made anew only when the length changes. */
  private xml = this.room;
  private isFilled = false;
  private stamp: Stamp | undefined;
  /** Until it is settled: the event itself. */
  private fresh: Delivery | undefined;
  private frame: Buffer | undefined;

  constructor(redeliver: Redeliver, mostBytes: number) {
    this.redeliver = redeliver;
    this.mostBytes = mostBytes;
  }

  /** Replaces what was kept; false when it is too long, then nothing is. `settle` before the turn ends. */
  keep(delivery: Delivery, stamp: Stamp): boolean {
    this.fresh = undefined;
    this.frame = undefined;
    this.isFilled = delivery.mostXmlBytes <= this.mostBytes;
    if (!this.isFilled) return false;
    this.fresh = delivery;
    this.stamp = stamp;
    return true;
  }

  /** Its event may go. */
  settle(): void {
    const { fresh } = this;
    if (fresh === undefined) return;
    const most = fresh.mostXmlBytes;
    if (this.room.length < most) {
      this.room = Buffer.allocUnsafeSlow(Math.ceil(most / ROOM_STEP) * ROOM_STEP);
      this.xml = this.room;
    }
    const length = fresh.writeXml(this.room, 0);
    if (length !== this.xml.length) this.xml = this.room.subarray(0, length);
    this.fresh = undefined;
  }

  /** Its memory is needed. */
  forget(): void {
    this.fresh = undefined;
    this.frame = undefined;
    this.room = NOTHING;
    this.xml = NOTHING;
    this.isFilled = false;
  }

  get isKept(): boolean {
    return this.isFilled;
  }

  get mostXmlBytes(): number {
    return this.fresh?.mostXmlBytes ?? this.xml.length;
  }

  writeXml(target: Buffer, at: number): number {
    return this.fresh?.writeXml(target, at) ?? at + this.xml.copy(target, at);
  }

  /** Empty when it cannot be written so. */
  protobuf(): Buffer {
    if (this.fresh !== undefined) return this.fresh.protobuf();
    this.frame ??= (this.stamp && this.redeliver(this.xml, this.stamp))?.protobuf() ?? NOTHING;
    return this.frame;
  }
}
