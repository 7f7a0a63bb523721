#if canImport(Darwin)
    import Foundation
    import Security
    import SluiceCore
    import SluiceSync
    import Synchronization

    /// One request of `URLSession`: it checks the server's key, and bounds the answer, which the system decompresses.
    final class SystemRequest: NSObject, URLSessionDataDelegate {
        private struct State {
            var body: [UInt8] = []
            /// The error that ended the request before the system does.
            var refusal: SluiceError?
            /// Nil once called.
            var completion: (@Sendable (Result<([UInt8], Int), SluiceError>) -> Void)?
        }

        private let pins: KeyPins
        private let state: Mutex<State>

        /// - Parameter completion: Called once, on any thread.
        init(_ pins: KeyPins, completion: @escaping @Sendable (Result<([UInt8], Int), SluiceError>) -> Void) {
            self.pins = pins
            state = Mutex(State(completion: completion))
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let space = challenge.protectionSpace
            guard !pins.isEmpty, space.authenticationMethod == NSURLAuthenticationMethodServerTrust else {
                return completionHandler(.performDefaultHandling, nil)
            }
            do throws(SluiceError) {
                try check(space.serverTrust, of: space.host)
                // The system verifies the chain as without pins.
                completionHandler(.performDefaultHandling, nil)
            } catch {
                state.withLock { $0.refusal = error }
                completionHandler(.cancelAuthenticationChallenge, nil)
            }
        }

        private func check(_ trust: SecTrust?, of host: String) throws(SluiceError) {
            guard let trust, let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate], let own = chain.first
            else { throw SluiceError(.serverKeyMismatch, "\(host) shows no certificate that can be read.") }
            try pins.check(certificate: [UInt8](SecCertificateCopyData(own) as Data), of: host)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            do throws(SluiceError) {
                try pins.check(request.url?.absoluteString ?? "", isSecure: request.url?.scheme?.lowercased() == "https")
                completionHandler(request)
            } catch {
                state.withLock { $0.refusal = error }
                completionHandler(nil)
                task.cancel()
            }
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            let isTooLarge = state.withLock { state in
                guard state.body.count + data.count <= Limits.messageBytes else {
                    state.refusal = SluiceError(.limitsExceeded, "The answer has more than \(Limits.messageBytes) bytes.")
                    return true
                }
                state.body += data
                return false
            }
            if isTooLarge { dataTask.cancel() }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            let (completion, refusal, body) = state.withLock { state in (state.completion.take(), state.refusal, state.body) }
            if let refusal {
                completion?(.failure(refusal))
            } else if let response = task.response as? HTTPURLResponse, error == nil {
                completion?(.success((body, response.statusCode)))
            } else {
                completion?(.failure(SluiceError(.connectionFailed, error?.localizedDescription ?? "no answer")))
            }
        }
    }
#endif
