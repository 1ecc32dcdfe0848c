/** The server's certificate by the admin API. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'

const CERTIFICATES = '/api/admin/v1/certificates'

t.test('the certificate is shown with names and expiry, and renewed only by ACME', async t => {
  const postroad = await openTestAppliance(t)
  const operator = { key: await tokenWith(postroad, 'operator') }
  const viewer = { key: await tokenWith(postroad, 'viewer') }
  const { body } = await postroad.get(CERTIFICATES, viewer)
  t.match(body.data, [
    { names: ['mx.postroad.test'], source: 'self_signed', expires_at: /Z$/, days_left: Number, acme: null },
  ])
  t.match(await postroad.post(`${CERTIFICATES}/renew`, '', viewer), { status: 403 })
  t.match(await postroad.post(`${CERTIFICATES}/renew`, '', operator), {
    status: 409,
    body: { error: { message: /tls\.acme is on/ } },
  })
})
