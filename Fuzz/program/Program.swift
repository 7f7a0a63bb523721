// The program around the tests `run` and `tested` of a folder: libFuzzer's entry, or a run over files.

#if FUZZER
    @c(LLVMFuzzerTestOneInput)
    public func fuzzOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
        run(Array(UnsafeBufferPointer(start: start, count: count)))
        return 0
    }
#else
    import Foundation

    /// Runs every file of the directories given, without the fuzzer's instrumentation.
    @main
    enum Files {
        static func main() throws {
            var files = 0
            for directory in CommandLine.arguments.dropFirst() {
                for file in try FileManager.default.contentsOfDirectory(atPath: directory).sorted() {
                    guard let bytes = FileManager.default.contents(atPath: directory + "/" + file) else { continue }
                    run(Array(bytes))
                    files += 1
                }
            }
            print(files, "\(tested), each as it should be")
        }
    }
#endif
