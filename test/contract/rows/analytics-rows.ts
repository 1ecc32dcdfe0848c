/** Rule -> test for analytics, conversions and product views. */
import { inFile, type Row } from '../row.js'

const report = inFile('analytics/report-served')
const shop = inFile('analytics/shop-served')
const TABLE = 'Deliverability, domains, analytics, tracking'

export const ANALYTICS_ROWS: readonly Row[] = [
  {
    rule: 'GET /analytics takes 1d, 7d, 30d or 90d; zero-filled days in UTC',
    from: [`${TABLE} > GET /analytics`],
    tests: [
      report('a period is 1, 7, 30 or 90 days, 30 by default'),
      report('mail sent more than 90 days ago is not counted'),
    ],
  },
  {
    rule: 'GET /analytics also takes since and until, one of campaign_id, tag and domain, or group_by (additive)',
    from: [`${TABLE} > GET /analytics`],
    tests: [report('a report can be filtered or grouped by tag, sender domain and campaign')],
  },
  {
    rule: 'totals sends, api_sends, delivered, bounces, and daily_api_sends as {date, count}; no sandbox',
    from: [
      'Other resources > Analytics totals sends campaign_sends api_sends',
      'decisions: Deliverability > Analytics {totals daily_api_sends [{date "YYYY-MM-DD"',
    ],
    tests: [
      report('accepted, sent, delivered and bounced mail is counted on its day'),
      report('neither the sandbox nor other workspaces are counted; the sandbox has separate counters'),
    ],
  },
  {
    rule: 'totals opens and clicks',
    from: ['Other resources > Analytics totals sends campaign_sends api_sends'],
    tests: [
      inFile('tracking/tracked-served')('the pixel at the end of the body records an open'),
      inFile('tracking/tracked-served')(
        'a tracked link redirects to its target, and a person is counted once',
      ),
    ],
  },
  {
    rule: 'a click without an open also records the open, everywhere; mailbox image proxies are people, prefetchers machines',
    from: ['decisions: Added after the whole contract was tried from outside > **Opens and clicks** A click'],
    tests: [
      inFile('tracking/tracked-served')(
        'a click without a loaded pixel is an open for contacts, triggers and waiting runs too',
      ),
      inFile('webhooks/events-served')('opens, clicks, bounces and complaints are events'),
    ],
  },
  {
    rule: 'total campaign_sends',
    from: ['Other resources > Analytics totals sends campaign_sends api_sends'],
    tests: [
      inFile('campaigns/campaign-send')(
        'a campaign goes to everybody in the list who may be mailed, once each, and is completed',
      ),
    ],
  },
  {
    rule: 'contact_id (a UUID) and value (a number) are required; currency is ISO 4217, metadata an object of at most 8 KB',
    from: [
      `${TABLE} > POST /conversions`,
      'Other resources > Conversion contact_id (required) value (required)',
      'decisions: Deliverability > Conversion contact_id UUID value number',
    ],
    tests: [shop('an invalid conversion is refused, naming the field, before the contact is looked up')],
  },
  {
    rule: 'an unknown contact is a 404 contact_not_found',
    from: ['Errors > contact_not_found'],
    answers: [
      'POST /api/v1/conversions: contact_not_found',
      'POST /api/v1/track/product-view: contact_not_found',
    ],
    tests: [
      shop('a conversion of an unknown contact is a 404 contact_not_found and is not recorded'),
      shop('a product view of an unknown contact is a 404 contact_not_found'),
    ],
  },
  {
    rule: 'a conversion is recorded, attributed to the last message clicked or opened within 7 days, listed, and read by GET /conversions/:id',
    from: [
      `${TABLE} > POST /conversions`,
      `${TABLE} > GET /conversions`,
      'decisions: Deliverability > Conversion contact_id UUID value number',
    ],
    tests: [shop('conversions and product views are recorded, by default in the currency of the workspace')],
  },
  {
    rule: 'contact_email and product_id are required; product data is checked',
    from: [
      `${TABLE} > POST /track/product-view`,
      'Other resources > Product view (tracking) contact_email (required)',
      'decisions: Deliverability > Product view product_name product_url image_url',
    ],
    tests: [
      shop('an invalid product view is refused, naming the field, before the contact is looked up'),
      shop('a product view of an unknown contact is a 404 contact_not_found'),
    ],
  },
  {
    rule: 'a product view is recorded',
    from: [`${TABLE} > POST /track/product-view`],
    tests: [shop('conversions and product views are recorded, by default in the currency of the workspace')],
  },
]
