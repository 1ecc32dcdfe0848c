/** Fields of counts and rates of emails, as results of campaigns, variants and providers show them. */
import Type from 'typebox'

export const count = (description: string) => Type.Integer({ description })
export const rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, description })

export const statFields = {
  sends: count('Emails handed to a remote server for the first time.'),
  delivered: count('Emails accepted by the remote server.'),
  opens: count('Opens, excluding bots.'),
  unique_opens: count('Recipients who opened.'),
  clicks: count('Clicks, excluding bots.'),
  unique_clicks: count('Recipients who clicked.'),
  bounces: count('Emails permanently rejected, expired or bounced later.'),
  complaints: count('Emails reported as spam.'),
  unsubscribes: count('Unsubscribes.'),
}

export const rateFields = {
  delivery_rate: rate('delivered / sends.'),
  open_rate: rate('unique_opens / delivered.'),
  click_rate: rate('unique_clicks / delivered.'),
  bounce_rate: rate('bounces / sends.'),
  complaint_rate: rate('complaints / delivered.'),
  unsubscribe_rate: rate('unsubscribes / delivered.'),
}

export const RATES = 'Fractions from 0 to 1; 0 if the denominator is 0.'
