import GatewayTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `A gateway's housekeeping` {
    @Test func `forgets at the start what no client can need`() async throws {
        try await RunningGateway.deploy { deployment in
            try await deployment.run(ShopApp.files) { gateway in
                try await gateway.sql("UPDATE sluice.horizon SET at = now() - interval '1 day'")
            }
            try await deployment.run(ShopApp.files) { gateway in
                let isNew = "SELECT count(*) FROM sluice.horizon WHERE at > now() - interval '1 hour'"
                let happens = try await gateway.eventually(isNew, is: 1)
                #expect(happens)
            }
        }
    }
}
