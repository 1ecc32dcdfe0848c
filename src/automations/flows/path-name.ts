/** Ways out of a step: `yes` and `no` of a condition, `event` and `timeout` of a wait, `next` of the others. */
export type PathName = 'next' | 'yes' | 'no' | 'event' | 'timeout'
