/** Parsing of MTA-STS records and policies, and matching of hosts. */
import t from 'tap'
import { listsHost, parseStsId, parseStsPolicy, type StsPolicy } from '../../../src/mta/routing/mta-sts.js'
import { policyText } from '../../support/smtp/mta-sts.js'

function policyOf(text: string): StsPolicy {
  const reading = parseStsPolicy(text)
  if ('fault' in reading) throw new Error(reading.fault)
  return reading.policy
}

for (const [what, records] of [
  ['as written in the standard', ['v=STSv1; id=20160831085700Z;']],
  ['without the last semicolon', ['v=STSv1;id=20160831085700Z']],
  ['with spaces around the semicolons', ['v=STSv1 ; \tid=20160831085700Z ; ']],
  ['with a field of a later version', ['v=STSv1; next=x,y; id=20160831085700Z;']],
  ['beside records of other kinds', ['v=spf1 -all', 'v=STSv1; id=20160831085700Z;', 'v=STSv2; id=2;']],
  ['with the id twice, where the first counts', ['v=STSv1; id=20160831085700Z; id=other']],
] as const)
  t.test(`a record is parsed ${what}`, async t => {
    t.equal(parseStsId(records), '20160831085700Z')
  })

for (const [what, records] of [
  ['there is no record', []],
  ['the record is of another kind', ['v=spf1 -all']],
  ['there are two records', ['v=STSv1; id=1;', 'v=STSv1; id=2;']],
  ['the version does not come first', ['id=1; v=STSv1;']],
  ['the version is in lower case', ['v=stsv1; id=1;']],
  ['there is no id', ['v=STSv1;']],
  ['the id is empty', ['v=STSv1; id=;']],
  ['the id has a character that it must not have', ['v=STSv1; id=2026-01-05;']],
  ['the id is longer than 32 characters', [`v=STSv1; id=${'1'.repeat(33)};`]],
  ['the first of two ids is wrong', ['v=STSv1; id=-; id=1;']],
  ['a field has no value', ['v=STSv1; id=1; next;']],
  ['a field between is empty', ['v=STSv1;; id=1;']],
] as const)
  t.test(`no policy is announced if ${what}`, async t => {
    t.equal(parseStsId(records), undefined)
  })

t.test('a policy has a mode, hosts and a max_age', async t => {
  t.same(policyOf('version: STSv1\nmode: enforce\nmx: MX1.Example\nmx:*.example.net  \nmax_age:\t604800\n'), {
    mode: 'enforce',
    mx: ['mx1.example', '*.example.net'],
    maxAgeSeconds: 604_800,
  })
})

for (const [what, text] of [
  ['with CRLF', policyText()],
  ['with LF', policyText().replaceAll('\r\n', '\n')],
  ['without an end of the last line', policyText().trimEnd()],
  ['with empty lines at the end', `${policyText()}\r\n\r\n`],
  ['in another order', policyText().trimEnd().split('\r\n').reverse().join('\n')],
  ['with a field of a later version', `${policyText()}x-note: für später: ja\r\n`],
  ['with a field repeated, where the first counts', `${policyText()}mode: none\r\nmax_age: x\r\n`],
] as const)
  t.test(`a policy is parsed ${what}`, async t => {
    t.same(policyOf(text), { mode: 'enforce', mx: ['mx.example'], maxAgeSeconds: 86_400 })
  })

t.test('a policy that is being withdrawn needs no hosts', async t => {
  t.match(policyOf(policyText({ mode: 'none', mx: [] })), { mode: 'none', mx: [] })
})

t.test('max_age may be about a year', async t => {
  t.equal(policyOf(policyText({ maxAge: 31_557_600 })).maxAgeSeconds, 31_557_600)
  t.equal(policyOf(policyText({ maxAge: 0 })).maxAgeSeconds, 0)
})

for (const [what, text, fault] of [
  ['is empty', '', 'its version is not STSv1'],
  ['has no version', policyText().replace('version: STSv1\r\n', ''), 'its version is not STSv1'],
  ['has another version', policyText().replace('STSv1', 'STSv2'), 'its version is not STSv1'],
  ['has no mode', policyText().replace('mode: enforce\r\n', ''), /mode/],
  ['has an unknown mode', policyText({ mode: 'Enforce' }), /mode/],
  ['has no mx', policyText({ mx: [] }), 'it has no mx'],
  ['is only tested and has no mx', policyText({ mode: 'testing', mx: [] }), 'it has no mx'],
  ['has no max_age', policyText().replace(/max_age.*\r\n/, ''), /max_age/],
  ['has a max_age beyond a year', policyText({ maxAge: 31_557_601 }), /max_age/],
  ['has a negative max_age', policyText({ maxAge: -1 }), /max_age/],
  ['has a max_age with a unit', policyText({ maxAge: '1d' }), /max_age/],
  ['has a star within a name', policyText({ mx: ['mx.*.example'] }), /mx/],
  ['has a star that is part of a label', policyText({ mx: ['mx*.example'] }), /mx/],
  ['has a star and nothing else', policyText({ mx: ['*'] }), /mx/],
  ['has two stars', policyText({ mx: ['*.*.example'] }), /mx/],
  ['lists several hosts in one line', policyText({ mx: ['mx1.example, mx2.example'] }), /mx/],
  ['lists a host with a trailing dot', policyText({ mx: ['mx.example.'] }), /mx/],
  ['lists an address', policyText({ mx: ['[192.0.2.25]'] }), /mx/],
  ['has a line that is no field', `${policyText()}please\r\n`, /line/],
  ['has an empty line in the middle', policyText().replace('mode', '\r\nmode'), /line/],
  ['has a field without a value', `${policyText()}x-note:\r\n`, /line/],
  ['has a control character', `${policyText()}x-note: a\u0000b\r\n`, /line/],
  ['is a web page', '<!DOCTYPE html>\n<html></html>', /line/],
  ['lists hosts without end', policyText({ mx: Array.from({ length: 201 }, () => 'mx.example') }), /mx/],
] as const)
  t.test(`a policy that ${what} is invalid`, async t => {
    t.match(parseStsPolicy(text), { fault })
  })

t.test('the wildcard of an mx matches exactly the left-most label', async t => {
  const policy = policyOf(policyText({ mx: ['*.example.com', 'mx.example.net'] }))
  for (const host of ['mx1.example.com', 'mx.example.net']) t.equal(listsHost(policy, host), true, host)
  for (const host of [
    'example.com',
    'a.b.example.com',
    'mx2.example.net',
    'mx.example.net.evil.example',
    '.example.com',
    'com',
  ])
    t.equal(listsHost(policy, host), false, host)
})
