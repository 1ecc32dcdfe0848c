/** A few of the kills of `make crash`. */
import t from 'tap'
import { Proof } from '../proof.js'
import { runCrash } from './run-crash.js'

t.test('a server killed three times under mixed load keeps every promise', async t => {
  const proof = new Proof()
  t.teardown(() => proof.end())
  const notes = await runCrash(proof, { kills: 3, seed: 7, rate: 80, campaignSize: 60, longestRunMs: 1_500 })
  for (const note of notes) t.comment(note)
  t.same(
    proof.broken.map(({ what, seen }) => `${what}: ${seen}`),
    [],
  )
})
