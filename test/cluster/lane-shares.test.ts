/** Which node delivers to which destination. */
import t from 'tap'
import { nodeFor } from '../../src/cluster/lane-shares.js'

const destinations = Array.from({ length: 3_000 }, (_, at) => `d${at}.example`)
const countsOf = (nodes: readonly string[]) =>
  nodes.map(node => destinations.filter(one => nodeFor(one, nodes) === node).length)

t.test('each destination has one node, whatever the order of the list', async t => {
  for (const one of destinations.slice(0, 100))
    t.equal(nodeFor(one, ['a', 'b', 'c']), nodeFor(one, ['c', 'a', 'b']))
  t.equal(nodeFor('one.example', ['a']), 'a')
})

t.test('nodes have about equal shares', async t => {
  for (const count of countsOf(['a', 'b', 'c'])) t.ok(Math.abs(count - 1_000) < 150, String(count))
})

t.test('when a node leaves, only its own destinations move', async t => {
  const stayed = destinations.filter(one => nodeFor(one, ['a', 'b', 'c']) !== 'c')
  t.ok(stayed.every(one => nodeFor(one, ['a', 'b', 'c']) === nodeFor(one, ['a', 'b'])))
})
