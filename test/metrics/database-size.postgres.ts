/** The metrics of a server whose database is PostgreSQL. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

t.test('the size of the database is measured', async t => {
  const { baseUrl } = await openTestAppliance(t)
  const text = await (await fetch(`${baseUrl}/metrics`)).text()
  const [, octets = ''] = /^postroad_database_bytes (\S+)$/m.exec(text) ?? []
  t.ok(Number(octets) > 1_000_000, octets)
  t.notMatch(text, 'postroad_database_wal_bytes', 'which only a file has')
})
