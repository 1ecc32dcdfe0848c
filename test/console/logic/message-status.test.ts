/** What lists say of a message. */
import t from 'tap'
import { de } from '../../../src/console/web/i18n/de'
import { en } from '../../../src/console/web/i18n/en'
import { es } from '../../../src/console/web/i18n/es'
import { fr } from '../../../src/console/web/i18n/fr'
import { shownStatus, toneOf } from '../../../src/console/web/lib/message-status'

const message = (more: object) => ({ status: 'delivered', delivery_state: null, is_captured: false, ...more })

t.test('mail that was kept instead of sent is not called delivered', t => {
  t.equal(shownStatus(message({})), 'delivered')
  t.equal(shownStatus(message({ is_captured: true })), 'captured')
  t.not(toneOf('captured'), 'good', 'nor is it green')
  t.equal(shownStatus(message({ is_captured: true, status: 'opened' })), 'opened', 'in the local inbox')
  t.equal(shownStatus(message({ status: 'sent', delivery_state: 'deferred' })), 'deferred')
  for (const texts of [en, de, fr, es]) t.ok(texts.messages.status.captured)
  t.end()
})
