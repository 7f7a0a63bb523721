import SluiceCore
import SluiceNet
import Testing

@testable import SluiceGateway

@Suite struct `The certificate of the client port` {
    @Test func `is warned of from two weeks before its end, once a day`() {
        let end: Int64 = 100 * 86_400
        var alarm = CertificateAlarm(end: end)
        var due: [Bool] = []
        for early in [14 * 86_400, 14 * 86_400 - 1, 13 * 86_400, 13 * 86_400 - 1, -86_400] as [Int64] {
            due.append(alarm.isDue(at: end - early))
        }
        #expect(due == [false, true, false, true, true])
        #expect(alarm.hours(at: end + 86_400) == -24)
        var none = CertificateAlarm()
        let isDue = none.isDue(at: end)
        #expect(!isDue)
    }

    @Test func `needs its key, and the client authorities need both`() throws {
        #expect(try GatewayConfiguration.tls(certificate: nil, key: nil, clientAuthorities: nil) == nil)
        let both = try GatewayConfiguration.tls(certificate: "c", key: "k", clientAuthorities: "a")
        #expect(both == TLSFiles(certificateChain: "c", privateKey: "k", clientAuthorities: "a"))
        for (certificate, key, authorities) in [("c", nil, nil), (nil, "k", nil), (nil, nil, "a")] as [(String?, String?, String?)] {
            let error = #expect(throws: SluiceError.self) {
                try GatewayConfiguration.tls(certificate: certificate, key: key, clientAuthorities: authorities)
            }
            #expect(error?.code == .configInvalid && error?.fix?.contains("--tls-key") == true)
        }
    }
}
