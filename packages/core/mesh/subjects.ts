// Names the subjects of the bus.

const PREFIX = 'holdfast.core';

export const subjects = {
  /** Events for who receives from the group at that place. */
  group: (place: number): string => `${PREFIX}.group.${place}`,
  /** For that node alone. */
  node: (node: string): string => `${PREFIX}.node.${node}`,
  /** What that node has missed. */
  replay: (node: string): string => `${PREFIX}.replay.${node}`,
  /** Events for every client. */
  all: `${PREFIX}.all`,
  /** Which clients a node has. */
  clients: `${PREFIX}.clients`,
  /** The same, for that node alone. */
  clientsOf: (node: string): string => `${PREFIX}.clients.${node}`,
  /** Questions for the newest reports of groups. */
  reports: `${PREFIX}.reports`,
  /** Questions for the emergencies of all nodes. */
  emergencies: `${PREFIX}.emergencies`,
  /** Answers to that node. */
  emergenciesOf: (node: string): string => `${PREFIX}.emergencies.${node}`,
  /** What every node is to read again or to do. */
  control: `${PREFIX}.control`,
} as const;
