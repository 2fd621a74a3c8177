import { Tacho } from '@tacho/sdk'

const tacho = new Tacho({ agentName: 'vite-ssr' })
const refund = tacho.guard(async (amount) => `paid ${amount}`, { name: 'refund' })

export const render = () => tacho.run(() => refund(100).catch(({ name }) => name))

export const end = () => tacho.shutdown()
