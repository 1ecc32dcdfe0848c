/** How good or bad something is, as badges and figures show it. */
export type Tone = 'good' | 'bad' | 'warn' | 'info' | 'none'
