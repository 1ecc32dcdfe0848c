/** The report of a suite: which files ran, with how many assertions, what they took, and what failed. */
import t from 'tap'
import { readReport } from './suite-report.js'

const TAP = `TAP version 14
1..3
# Subtest: build/test/a.test.js
    # Subtest: outer
        ok 1 - should be equal
        # Subtest: inner
            ok 1 - (unnamed test)
            1..1
        ok 2 - inner # time=1.5ms

        ok 3 - should match pattern
        1..3
    ok 1 - outer # time=3ms

    1..1
ok 1 - build/test/a.test.js # time=90.25ms

# Subtest: build/test/b.test.js
    # Subtest: something
        ok 1 - should be equal
        not ok 2 - should be equal
          ---
          diff: |
            ok 1 - this is no assertion
          ...
        ok 3 - after a diagnostic
        1..3
    not ok 1 - something # time=3ms
      ---
      at:
        fileName: test/b.test.ts
      ...

    1..1
    # failed 1 test
not ok 2 - build/test/b.test.js # time=50ms
  ---
  exitCode: 1
  ...

ok 3 - build/test/c.test.js # SKIP no reason
# { total: 6, pass: 5, fail: 1 }
`

const NOTES = [
  { file: 'build/test/a.test.js', wallMs: 120, cpuMs: 80 },
  { file: 'build/test/a.test.js', wallMs: 30, cpuMs: 10 },
  { file: 'PostgreSQL', wallMs: 9_000, cpuMs: 2_500 },
]
  .map(note => JSON.stringify(note))
  .join('\n')

t.test('assertions are counted by file, without the results of subtests', async t => {
  const { files, assertions, postgresCpuMs } = readReport(TAP, NOTES)
  t.strictSame(files, [
    { file: 'build/test/a.test.js', isOk: true, assertions: 3, wallMs: 120, cpuMs: 80 },
    { file: 'build/test/b.test.js', isOk: false, assertions: 3, wallMs: undefined, cpuMs: undefined },
    { file: 'build/test/c.test.js', isOk: true, assertions: 1, wallMs: undefined, cpuMs: undefined },
  ])
  t.equal(assertions, 7)
  t.equal(postgresCpuMs, 2_500)
})

t.test('failures are told with their diagnostics', async t => {
  t.same(
    readReport(TAP, '').failures.filter(line => /not ok|this is no|exitCode/.test(line)),
    [
      '        not ok 2 - should be equal',
      '            ok 1 - this is no assertion',
      '    not ok 1 - something # time=3ms',
      'not ok 2 - build/test/b.test.js # time=50ms',
      '  exitCode: 1',
    ],
  )
})

t.test('a report that is cut off reads as far as it goes', async t => {
  const { files } = readReport(TAP.slice(0, TAP.indexOf('# Subtest: build/test/b')), '')
  t.equal(files.length, 1)
  t.same(readReport('', '').files, [])
})
