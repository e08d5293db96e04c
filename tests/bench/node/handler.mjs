// Does the work of the function `api` for `GET /v1/apps`: one query, and the rows as JSON.
import { DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';

const table = process.env.FREEHOLD_TABLE;
const client = new DynamoDBClient({});

export async function handler(event) {
  const { method, path } = event.requestContext.http;
  if (method !== 'GET' || path !== '/v1/apps') {
    return { statusCode: 404, body: JSON.stringify({ error: { kind: 'not_found', message: 'no such route' } }) };
  }
  const found = await client.send(new QueryCommand({
    TableName: table,
    KeyConditionExpression: 'pk = :pk',
    ExpressionAttributeValues: { ':pk': { S: 'apps' } },
    ConsistentRead: true,
    Limit: 50,
  }));
  const items = found.Items.map((row) => JSON.parse(row.body.S));
  return { statusCode: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ items }) };
}
