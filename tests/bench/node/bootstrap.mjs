// A Lambda runtime loop without layers: the best case for Node.
import http from 'node:http';
import { handler } from './handler.mjs';

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':');
const agent = new http.Agent({ keepAlive: true });

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const request = http.request(
      { host, port, method, path: `/2018-06-01/runtime/invocation/${path}`, agent, headers },
      (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('end', () => resolve({ headers: answer.headers, body: Buffer.concat(parts).toString() }));
      },
    );
    request.on('error', reject);
    request.setNoDelay(true);
    request.end(body);
  });
}

for (;;) {
  const event = await ask('GET', 'next');
  const id = event.headers['lambda-runtime-aws-request-id'];
  try {
    await ask('POST', `${id}/response`, JSON.stringify(await handler(JSON.parse(event.body))));
  } catch (error) {
    await ask('POST', `${id}/error`, JSON.stringify({ errorType: error.name, errorMessage: error.message }));
  }
}
