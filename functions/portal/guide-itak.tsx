// iTAK on iPhone and iPad: its code has no room for name and password, so these are typed.

import type { Guide } from './guide.ts';
import { PackageLink, Path, Steps, whyPackage } from './guide-steps.tsx';

export const itakGuide: Guide = {
  title: 'iTAK on iPhone and iPad',
  about: 'Name and password are typed. For TAK Aware and TAK Tracker choose theirs under Add a device',
  body: (facts) => {
    const scan = (
      <Steps
        title={facts.linkIsEnough ? 'Scan the code' : 'Then the code, if the package did not ask for a name'}
        steps={[
          <>
            On another screen open <a href="/add-device">Add a device</a> and choose iTAK.
          </>,
          <>
            In iTAK: <Path of={['Settings', 'Network', 'Servers', '+', 'Scan QR']} />, and scan it with iTAK itself: the
            camera of the phone cannot read this code.
          </>,
          <>
            Type your name <code>{facts.username}</code> and the app password that stands beside the code. It is not the
            password that you sign in with here.
          </>,
          <>The server turns green in the list.</>,
        ]}
      />
    );
    const bring = (
      <Steps
        title={facts.linkIsEnough ? 'If it does not trust the server: the package' : 'Open the package first'}
        intro={whyPackage(facts)}
        steps={[
          <>
            On the device itself: <PackageLink facts={facts} app="itak" />
          </>,
          <>
            In iTAK: <Path of={['Settings', 'Network', 'Servers', '+', 'Upload Server Package']} />, and choose the file
            in Downloads. Do not unpack it.
          </>,
          <>
            When iTAK asks: your name <code>{facts.username}</code>, and the app password of{' '}
            <a href="/add-device">Add a device</a>.
          </>,
        ]}
      />
    );
    return facts.linkIsEnough ? (
      <>
        {scan}
        {bring}
      </>
    ) : (
      <>
        {bring}
        {scan}
      </>
    );
  },
};
