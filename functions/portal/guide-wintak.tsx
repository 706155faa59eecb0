// WinTAK on Windows: the package of ATAK, then name and password.

import type { Guide } from './guide.ts';
import { PackageLink, Path, Steps } from './guide-steps.tsx';

export const winTakGuide: Guide = {
  title: 'WinTAK on Windows',
  about: 'Computer with WinTAK-CIV; there is nothing to scan',
  body: (facts) => (
    <>
      <Steps
        title="Open the package"
        intro="It brings WinTAK the address, the ports and the certificate authority of this server. There is no key in it: WinTAK fetches one with your name and a password."
        steps={[
          <>
            On the computer: <PackageLink facts={facts} app="atak" />
          </>,
          <>
            Open <a href="/add-device">Add a device</a> beside it and choose WinTAK: it shows the app password.
          </>,
          <>
            In WinTAK: <Path of={['☰', 'Import Manager', 'Import File']} />, and choose the package; or drag it onto
            the map.
          </>,
          <>
            When WinTAK asks: name <code>{facts.username}</code>, and the app password. It restarts its connection, and
            the server symbol at the lower edge turns green.
          </>,
        ]}
      />
      <Steps
        title="When it does not ask"
        steps={[
          <>
            <Path of={['☰', 'Settings', 'Network Preferences', 'Manage Server Connections']} />: choose the server that
            the package brought, and edit it.
          </>,
          <>
            Tick <strong>Use Authentication</strong> and <strong>Enroll for Client Certificate</strong>, type name and
            app password, and save.
          </>,
        ]}
      />
    </>
  ),
};
