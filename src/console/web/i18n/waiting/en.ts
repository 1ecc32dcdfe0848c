/** Texts of what things wait for, and how long sending takes: English. */
export const waiting = {
  waiting: {
    /** @param limit the number, formatted */
    sentences: {
      hourly_limit: (limit: string) =>
        `Waiting: the workspace has used its limit of ${limit} emails an hour.`,
      daily_limit: (limit: string) => `Waiting: the workspace has used its limit of ${limit} emails a day.`,
      rate: (limit: string) => `Waiting for its own rate of ${limit} emails an hour.`,
      sending_hours: () => 'Waiting for its sending hours.',
      usual_hour: () => 'Waiting for the hours at which the next recipients usually read.',
      hold: () => 'On hold until somebody continues it.',
      restore_hold: () =>
        'Waiting: the server was restored from a backup and sends nothing until its queue is released.',
      back_off: () => 'Waiting: the receiving hosts asked to slow down, or could not be reached.',
      site_rate: (limit: string) => `Waiting: the receiving hosts get ${limit} messages a minute.`,
      retry: () => 'Waiting for another attempt after a temporary failure.',
      ab_test: () => 'Waiting for the result of the A/B test.',
      queue_full: () => 'Waiting until its queued emails are delivered.',
      earlier_import: () => 'Waiting for an earlier import.',
      disk: () => 'Waiting: the mail server cannot store more.',
    },
    /** For lists. */
    short: {
      hourly_limit: 'Hourly limit',
      daily_limit: 'Daily limit',
      rate: 'Own rate',
      sending_hours: 'Sending hours',
      usual_hour: 'Usual hour',
      hold: 'On hold',
      restore_hold: 'Held after a restore',
      back_off: 'Back-off',
      site_rate: 'Rate of the hosts',
      retry: 'Next attempt',
      ab_test: 'A/B test',
      queue_full: 'Queue full',
      earlier_import: 'Earlier import',
      disk: 'Disk full',
    },
    /** Instead of a link to the setting. */
    remedies: {
      limit: 'An operator can raise the limit.',
      fixed: 'This is fixed once a campaign is sent; a copy can have other settings.',
      winner: 'Choose the winner to continue at once.',
    },
    links: { workspace: 'Change the limit', delivery: 'To the queue', health: 'To the health page' },
    label: 'Waits for',
    until: (moment: string) => `Continues: ${moment}.`,
    due: 'Due now',
    campaign: (name: string, reason: string) => `“${name}” waits: ${reason}`,
    /** @param how long, formatted */
    takes: (how: string) => `Sending takes about ${how} at today’s limits.`,
    takesMonths: 'Sending takes more than 90 days at today’s limits.',
    because: {
      hourly_limit: (limit: string) => `The workspace may send ${limit} emails an hour.`,
      daily_limit: (limit: string) => `The workspace may send ${limit} emails a day.`,
      rate: (limit: string) => `The campaign sends ${limit} emails an hour.`,
      sending_hours: () => 'The campaign is sent within its sending hours only.',
      usual_hour: () => 'Each recipient is mailed at their usual hour.',
      ab_test: () => 'The A/B test is decided in between.',
    },
  },
}
