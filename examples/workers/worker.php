<?php // A worker in PHP: claim, work, report. Nothing but what PHP itself brings.
$url = getenv('TAGWERK_URL') ?: 'http://127.0.0.1:7070';
$call = function (string $path, array $body) use ($url) {
    $http = ['method' => 'POST', 'header' => 'Content-Type: application/json', 'content' => json_encode($body), 'timeout' => 60];
    $answer = @file_get_contents($url . $path, false, stream_context_create(['http' => $http]));
    return $answer === false ? throw new RuntimeException(error_get_last()['message']) : json_decode($answer);
};
$handle = function (object $job): array { // $job->verify: an earlier attempt may have done it, then look before you do it again
    echo "job $job->id ($job->type): ", json_encode($job->payload), "\n";
    return empty($job->payload->fail) ? ['handled_by' => 'php'] : throw new InvalidArgumentException('asked to fail');
};
while (true) {
    try {
        $job = $call('/jobs/claim', ['worker_id' => 'php-' . getmypid(), 'wait_seconds' => 20]);
        if ($job === null) continue; // nothing to do within 20 seconds
        try { [$verb, $report] = ['complete', ['result' => $handle($job)]]; }
        catch (Throwable $error) { [$verb, $report] = ['fail', ['error' => $error->getMessage()]]; }
        $call("/jobs/$job->id/$verb", ['lease' => $job->lease] + $report);
    } catch (RuntimeException $error) { echo $error->getMessage(), "\n"; sleep(2); } // the server is away, or refused the call
}
