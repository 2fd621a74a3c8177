import 'reflect-metadata'
import { Controller, Get, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { Tacho, ToolBlockedError } from '@tacho/sdk'
import { recordClient } from '@tacho/sdk/openai'

/** A provider of this program, not of the SDK. */
@Injectable()
class Recorder extends Tacho implements OnApplicationShutdown {
  constructor() {
    super({ agentName: 'nest', fetch: globalThis.fetch })
  }

  async onApplicationShutdown(): Promise<void> {
    await this.shutdown()
  }
}

@Controller()
class RefundController {
  readonly #refund: (amount: number) => Promise<string>

  constructor(private readonly tacho: Recorder) {
    this.#refund = tacho.guard(async (amount: number) => `paid ${amount}`, { name: 'refund' })
  }

  @Get('refund')
  refund(): Promise<string> {
    return this.tacho.run({ sessionId: 'nest' }, async () => {
      try {
        return await this.#refund(100)
      } catch (error) {
        return error instanceof ToolBlockedError ? error.name : 'another error'
      }
    })
  }
}

@Module({ controllers: [RefundController], providers: [Recorder] })
class Program {}

async function main(): Promise<void> {
  const app = await NestFactory.create(Program, { logger: false })
  app.enableShutdownHooks()
  await app.listen(0, '127.0.0.1')
  console.log(await app.getUrl(), typeof recordClient)
}

void main()
