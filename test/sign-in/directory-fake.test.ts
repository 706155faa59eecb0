// The directory in memory does what every directory does.

import { describe } from 'vitest';
import { directoryContract } from './directory-contract.ts';
import { fakeDirectory } from './fake-directory.ts';

describe('the directory in memory', () => {
  directoryContract(
    async () => {
      const directory = fakeDirectory();
      const person = (username: string) => {
        const found = directory.people.get(username.toLowerCase());
        if (found === undefined) throw new Error(`there is no ${username}`);
        return found;
      };
      return {
        directory,
        createUser: async (username, password) => void directory.addPerson(username, password),
        createGroup: async (name) => directory.addGroup(name),
        join: async (username, group) => void person(username).groups.push(group),
        createAppPassword: async (username, expires) => {
          const text = `app password ${Math.random()}`;
          person(username).appPasswords.push({ text, expires });
          return text;
        },
        deactivate: async (username) => void (person(username).active = false),
        joinElsewhere: undefined,
        stop: async () => void (directory.mood = 'down'),
        start: async () => void (directory.mood = 'up'),
        end: async () => {},
      };
    },
    { appPasswords: true, inactiveUsers: true, groupsElsewhere: false, restart: true, anyUserName: true },
  );
});
