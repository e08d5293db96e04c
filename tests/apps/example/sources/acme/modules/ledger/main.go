package main

import (
	"os"

	"github.com/pulumi/pulumi-aws/sdk/v7/go/aws/dynamodb"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		table, err := dynamodb.NewTable(ctx, "ledger", &dynamodb.TableArgs{
			BillingMode: pulumi.String("PAY_PER_REQUEST"),
			HashKey:     pulumi.String("id"),
			Attributes: dynamodb.TableAttributeArray{
				&dynamodb.TableAttributeArgs{Name: pulumi.String("id"), Type: pulumi.String("S")},
			},
			Tags: pulumi.StringMap{"greeting": pulumi.String(os.Getenv("GREETING"))},
		})
		if err != nil {
			return err
		}
		ctx.Export("table", pulumi.Map{"name": table.Name, "arn": table.Arn})
		return nil
	})
}
