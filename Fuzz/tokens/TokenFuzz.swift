// Tokens and key sets under test by any bytes: access tokens of the gateway, login tokens of other issuers, and the answers of issuers.
// Nothing may crash, and no token that a key did not sign may pass. `make fuzz` runs it.

import Dispatch
import SluiceCore
import SluiceGateway
import SluiceIdentity
import Synchronization

private let tokens = wait {
    do { return try await AccessTokens(appID: "app", key: [UInt8](repeating: 7, count: 32)) } catch { fatalError("\(error)") }
}

/// Reads a token of each kind, and a key set.
func run(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    do throws(SluiceError) { _ = try SignedToken(text) } catch {
        if error.code != .loginTokenRejected { fatalError("an error of the reader: \(error)") }
    }
    wait {
        do throws(SluiceError) {
            let verified = try await tokens.verify(text)
            fatalError("a token of the login \(verified.login) has passed")
        } catch {
            // A token may name a key of a rotation that the gateway does not know yet.
            let namesKey = (try? SignedToken(text))?.keyID?.isEmpty == false
            if ![.badAuthentication, .tokenExpired].contains(error.code), error.code != .tooManyRequests || !namesKey {
                fatalError("an error of the access token: \(error)")
            }
        }
        do throws(SluiceError) {
            let keys = try await IssuerKeySet(jwks: bytes).keys
            if keys.isEmpty || keys.count > IssuerKeySet.maximumKeys { fatalError("\(keys.count) keys") }
        } catch {
            if error.code != .outboundFailed { fatalError("an error of the key set: \(error)") }
        }
    }
}

/// Waits for an asynchronous body: the fuzzer's entry is a function of C.
private func wait<T: Sendable>(_ body: @escaping @Sendable () async -> T) -> T {
    let (done, result) = (DispatchSemaphore(value: 0), Outcome(body))
    Task {  // Unstructured because: the caller waits for it on a thread of its own.
        await result.make()
        done.signal()
    }
    done.wait()
    guard let value = result.value else { fatalError("the body has no result") }
    return value
}

/// The result of a body, which another thread reads.
private final class Outcome<T: Sendable>: Sendable {
    private let body: @Sendable () async -> T
    private let stored = Mutex<T?>(nil)

    init(_ body: @escaping @Sendable () async -> T) { self.body = body }

    var value: T? { stored.withLock { $0 } }

    func make() async {
        let value = await body()
        stored.withLock { $0 = value }
    }
}

/// The name of the inputs in the last line of the output.
let tested = "tokens and key sets"
