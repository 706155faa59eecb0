// The configuration of semantic-release, for releasing/release.sh: what a release changes
// in the repository, and what it publishes.

/** On GitHub the archives are attached to the release; elsewhere they stay in .release. */
const github = ['@semantic-release/github', { assets: '.release/*', successComment: false, failComment: false }];

export default {
  branches: ['main'],
  tagFormat: 'v${version}',
  plugins: [
    './commits.mjs',
    ['@semantic-release/changelog', { changelogFile: 'CHANGELOG.md', changelogTitle: '# Changelog' }],
    [
      '@semantic-release/exec',
      {
        prepareCmd: './releasing/release.sh version ${nextRelease.version}',
        // The tag is there by now.
        publishCmd: './releasing/release.sh artifacts',
      },
    ],
    [
      '@semantic-release/git',
      {
        assets: [
          'CHANGELOG.md',
          'package.json',
          'package-lock.json',
          'compose/program.yaml',
          'compose/kubernetes/Chart.yaml',
        ],
        message: 'chore(release): ${nextRelease.version} [skip ci]',
      },
    ],
    ...(process.env.GITHUB_ACTIONS === 'true' ? [github] : []),
  ],
};
