// Reads the destinations of an event (`<marti>`). Without destinations, it goes to all who may
// receive it.

import type { CotElement, CotEvent, MissionDestination } from '../model/stream.ts';

/** A device, by uid or callsign; whichever is found. */
export interface DeviceDestination {
  uid: string | undefined;
  callsign: string | undefined;
}

export interface Destinations {
  /** To everybody who may hear the sender. */
  broadcast: boolean;
  /** The sender has named where it is to go. */
  explicit: boolean;
  devices: readonly DeviceDestination[];
  groups: readonly string[];
  missions: readonly MissionDestination[];
  /** False when the sender says that it is not to be stored. */
  archive: boolean;
}

const EVERYBODY = 'All Streaming';
/**
 * What stands beyond that in one event is passed over; of missions, each is a question to the
 * database.
 */
const MAX_DESTINATIONS = 4_096;
const MAX_MISSIONS = 16;
const BROADCAST: Destinations = {
  broadcast: true,
  explicit: false,
  devices: [],
  groups: [],
  missions: [],
  archive: true,
};

/** Each destination once. */
export function destinationsOf(event: CotEvent): Destinations {
  const marti = event.detail('marti');
  if (marti === undefined) return BROADCAST;
  const archive = marti.attribute('archive')?.toLowerCase() !== 'false';
  const dests = marti.children(MAX_DESTINATIONS).filter(({ name }) => name === 'dest');
  if (dests.length === 0) return { ...BROADCAST, archive };

  const devices = new Map<string, DeviceDestination>();
  const groups = new Set<string>();
  const missions = new Map<string, MissionDestination>();
  let broadcast = false;
  for (const dest of dests) {
    const { callsign, uid, group, mission, guid } = read(dest);
    if (callsign === EVERYBODY) broadcast = true;
    else if (uid !== undefined || callsign !== undefined) devices.set(`${uid}\n${callsign}`, { uid, callsign });
    if (group !== undefined) groups.add(group);
    if ((mission ?? guid) !== undefined && missions.size < MAX_MISSIONS)
      missions.set(`${guid}\n${mission}`, { name: mission, guid });
  }
  return {
    broadcast,
    explicit: true,
    devices: [...devices.values()],
    groups: [...groups],
    missions: [...missions.values()],
    archive,
  };
}

/** An empty attribute names nobody. */
function read(dest: CotElement) {
  const of = (name: string): string | undefined => dest.attribute(name) || undefined;
  return {
    callsign: of('callsign'),
    uid: of('uid'),
    group: of('group'),
    mission: of('mission'),
    guid: of('mission-guid'),
  };
}
